# Debian packages, made by `cpack` from the install rules: libpawl0.1 (the shared library), libpawl-dev, and pawl
# (command, server, service). What belongs to packages alone is left out of `cmake --install`.
if(BUILD_SHARED_LIBS)
  message(FATAL_ERROR "PAWL_PACKAGES makes the shared library beside the static one; leave BUILD_SHARED_LIBS off")
endif()
set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(shared libpawl${soversion})

# The same objects once more, so that nothing is compiled twice. The command keeps to the static library: it is
# one file that no upgrade of another package can break.
add_library(pawl_shared SHARED $<TARGET_OBJECTS:pawl>)
get_target_property(linked pawl LINK_LIBRARIES)
target_link_libraries(pawl_shared PRIVATE ${linked})
set_target_properties(pawl_shared PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME pawl VERSION ${PROJECT_VERSION}
                      SOVERSION ${soversion} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/shared)
install(TARGETS pawl_shared LIBRARY COMPONENT ${shared} NAMELINK_COMPONENT libpawl-dev EXCLUDE_FROM_ALL)

set(debian ${PROJECT_SOURCE_DIR}/deploy/debian)
set(service ${PROJECT_SOURCE_DIR}/deploy/systemd)
install(FILES ${service}/pawl.service DESTINATION /lib/systemd/system COMPONENT pawl EXCLUDE_FROM_ALL)
install(FILES ${service}/pawl.yaml DESTINATION /etc/pawl COMPONENT pawl EXCLUDE_FROM_ALL)
foreach(monitoring prometheus/alerts.yml grafana/pawl.json)
  get_filename_component(directory ${monitoring} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/${monitoring} DESTINATION share/pawl/${directory} COMPONENT pawl
          EXCLUDE_FROM_ALL)
endforeach()
foreach(package ${shared} libpawl-dev pawl)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/${package} RENAME copyright COMPONENT ${package}
          EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pawl)
set(CPACK_PACKAGE_VENDOR "The Pawl project")
set(CPACK_PACKAGE_CONTACT "The Pawl project <pawl@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${shared} libpawl-dev pawl)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# Variables of a package are named after its component, in capitals.
string(TOUPPER ${shared} SHARED)
set(CPACK_DEBIAN_${SHARED}_PACKAGE_NAME ${shared})
set(CPACK_DEBIAN_${SHARED}_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_${SHARED}_DESCRIPTION
    "The shared library. Pawl keeps state machines in a store, one atomic commit per step.")

set(CPACK_DEBIAN_LIBPAWL-DEV_PACKAGE_NAME libpawl-dev)
set(CPACK_DEBIAN_LIBPAWL-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBPAWL-DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_LIBPAWL-DEV_PACKAGE_DEPENDS
    "${shared} (= ${PROJECT_VERSION}), libboost1.81-dev, libboost-json1.81-dev, libfmt-dev, libsqlite3-dev, \
libpq-dev, libssl-dev, libsodium-dev, libyaml-cpp-dev, zlib1g-dev")
set(CPACK_DEBIAN_LIBPAWL-DEV_DESCRIPTION
    "Development files: headers, static libraries of the engine and the server, a CMake package and a pkg-config file.")

set(CPACK_DEBIAN_PAWL_PACKAGE_NAME pawl)
set(CPACK_DEBIAN_PAWL_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PAWL_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.54~)")
set(CPACK_DEBIAN_PAWL_DESCRIPTION
    "The pawl command, and the server with its HTTP API, live events and metrics as a service of systemd.")
set(CPACK_DEBIAN_PAWL_PACKAGE_CONTROL_EXTRA ${debian}/conffiles ${debian}/postinst ${debian}/prerm
    ${debian}/postrm)
include(CPack)
