# What `cmake --install` puts in place: headers, library, CMake package, pkg-config file and the command.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# Components are the Debian packages of cmake/package.cmake; a plain `cmake --install` takes them all.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME libpawl-dev)

set_target_properties(pawl PROPERTIES VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# How users of an installed static library find each library it links. A target missing here ends the
# configuration, so that a new dependency cannot break installed packages unnoticed.
set(pawl_find_dependencies "find_dependency(Threads)\n")
set(pawl_pc_requires "")
set(pawl_pc_libs "-pthread")
get_target_property(linked pawl LINK_LIBRARIES)
foreach(library IN LISTS linked)
  if(library STREQUAL "Threads::Threads")
    continue()
  elseif(library STREQUAL "fmt::fmt")
    set(find "fmt")
    list(APPEND pawl_pc_requires fmt)
  elseif(library STREQUAL "Boost::json")
    set(find "Boost 1.81 COMPONENTS json")
    string(APPEND pawl_pc_libs " -lboost_json -lboost_container")
  elseif(library MATCHES "^Boost::(boost|headers)$")
    # Public headers include Boost's, so users of a shared library need this one too.
    string(APPEND pawl_find_dependencies "find_dependency(Boost 1.81)\n")
    continue()
  elseif(library STREQUAL "SQLite::SQLite3")
    set(find "SQLite3")
    list(APPEND pawl_pc_requires sqlite3)
  elseif(library STREQUAL "PkgConfig::libpq")
    # Not a CMake package: the same target is made from the pkg-config file.
    list(APPEND pawl_pc_requires libpq)
    if(NOT BUILD_SHARED_LIBS)
      string(APPEND pawl_find_dependencies
             "find_dependency(PkgConfig)\npkg_check_modules(libpq REQUIRED IMPORTED_TARGET libpq)\n")
    endif()
    continue()
  elseif(library MATCHES "^OpenSSL::(SSL|Crypto)$")
    set(find "OpenSSL")
    list(APPEND pawl_pc_requires openssl)
  else()
    message(FATAL_ERROR "libpawl links ${library}; say in cmake/install.cmake how its users find that")
  endif()
  if(NOT BUILD_SHARED_LIBS)
    string(APPEND pawl_find_dependencies "find_dependency(${find})\n")
  endif()
endforeach()
list(REMOVE_DUPLICATES pawl_pc_requires)
list(JOIN pawl_pc_requires " " pawl_pc_requires)
if(BUILD_SHARED_LIBS)
  set(pawl_pc_requires "")
  set(pawl_pc_libs "")
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pawl)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/pawl-config.cmake.in
                              ${PROJECT_BINARY_DIR}/pawl-config.cmake INSTALL_DESTINATION ${package_dir}
                              NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pawl-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)

# The way from the pkg-config file up to the prefix, which depends on the depth of the library directory.
file(RELATIVE_PATH pawl_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pawl_pc_prefix "${pawl_pc_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/pawl.pc.in ${PROJECT_BINARY_DIR}/pawl.pc @ONLY)

install(TARGETS pawl EXPORT pawl-targets FILE_SET HEADERS)
install(EXPORT pawl-targets NAMESPACE pawl:: DESTINATION ${package_dir})
if(TARGET pawl_server)
  set_target_properties(pawl_server PROPERTIES EXPORT_NAME server)
  install(TARGETS pawl_server EXPORT pawl-server-targets)
  install(EXPORT pawl-server-targets NAMESPACE pawl:: DESTINATION ${package_dir})
endif()
install(FILES ${PROJECT_BINARY_DIR}/pawl-config.cmake ${PROJECT_BINARY_DIR}/pawl-config-version.cmake
        DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/pawl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# Each Debian package brings its own.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)
if(TARGET pawl_command)
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME pawl)
  if(BUILD_SHARED_LIBS)
    set_target_properties(pawl_command PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  endif()
  install(TARGETS pawl_command)
  install(TARGETS pawl_shim DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/pawl)
  install(FILES ${pawl_manual_dir}/pawl.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${pawl_manual_dir}/pawl DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${pawl_manual_dir}/_pawl DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${pawl_manual_dir}/pawl.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
