# The server: a library of its own, so that who only embeds the engine links neither TLS nor YAML.
find_package(OpenSSL REQUIRED COMPONENTS SSL Crypto)
find_package(ZLIB REQUIRED)
find_package(yaml-cpp REQUIRED)
find_library(PAWL_SODIUM sodium REQUIRED)  # Debian ships no CMake package for it

file(GLOB pawl_server_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/server/*.cpp)
add_library(pawl_server STATIC ${pawl_server_sources})
add_library(pawl::server ALIAS pawl_server)
target_include_directories(pawl_server PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(pawl_server PRIVATE PAWL_VERSION="${PROJECT_VERSION}")
target_link_libraries(pawl_server PUBLIC pawl PRIVATE fmt::fmt OpenSSL::SSL OpenSSL::Crypto ZLIB::ZLIB yaml-cpp
                      sodium)
target_precompile_headers(pawl_server PRIVATE ${pawl_precompiled})
include(cmake/dashboard.cmake)
# The thread sanitizer does not know fences that stand alone, which Asio puts around its handlers. Without them its
# queues still order handlers by their locks, which the sanitizer sees.
if(PAWL_THREADS_ONLY)
  target_compile_definitions(pawl_server PUBLIC BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
