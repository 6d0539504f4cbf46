# The systems that the command brings along: one library each, so that removing one is deleting its folder and a line.
find_package(CURL REQUIRED)
find_package(LibArchive REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(libmosquitto REQUIRED IMPORTED_TARGET libmosquitto)

file(GLOB_RECURSE pawl_images_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/systems/images/*.cpp)
add_library(pawl_images STATIC ${pawl_images_sources})
target_include_directories(pawl_images PUBLIC ${PROJECT_SOURCE_DIR}/systems PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(pawl_images PUBLIC pawl pawl_server PRIVATE fmt::fmt Boost::json OpenSSL::Crypto CURL::libcurl
                      LibArchive::LibArchive LibLZMA::LibLZMA ZLIB::ZLIB)
target_precompile_headers(pawl_images PRIVATE ${pawl_precompiled})

# The shim of a process is a program of its own and must stay small: one is there for each process.
file(GLOB_RECURSE pawl_workers_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/systems/workers/*.cpp)
set(pawl_shim_sources ${pawl_workers_sources})
list(FILTER pawl_workers_sources EXCLUDE REGEX "/process/shim/")
list(FILTER pawl_shim_sources INCLUDE REGEX "/process/(shim/[a-z_]+|record|proc)\\.cpp$")
add_library(pawl_workers STATIC ${pawl_workers_sources})
target_include_directories(pawl_workers PUBLIC ${PROJECT_SOURCE_DIR}/systems PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(pawl_workers PUBLIC pawl pawl_server PRIVATE fmt::fmt OpenSSL::SSL OpenSSL::Crypto CURL::libcurl yaml-cpp
                      PkgConfig::libmosquitto)
target_precompile_headers(pawl_workers PRIVATE ${pawl_precompiled})

add_executable(pawl_shim ${pawl_shim_sources})
set_target_properties(pawl_shim PROPERTIES OUTPUT_NAME pawl-shim RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_include_directories(pawl_shim PRIVATE ${PROJECT_SOURCE_DIR}/systems)
target_compile_options(pawl_shim PRIVATE -fno-exceptions)
if(NOT CMAKE_CXX_FLAGS_DEBUG MATCHES "sanitize")
  # Without libraries to load it takes half the memory; what sanitizers add has to be loaded.
  target_link_options(pawl_shim PRIVATE -static)
endif()
add_dependencies(pawl_workers pawl_shim)
