# The systems that the command brings along: one library each, so that removing one is deleting its folder and a line.
find_package(CURL REQUIRED)
find_package(LibArchive REQUIRED)

file(GLOB_RECURSE pawl_images_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/systems/images/*.cpp)
add_library(pawl_images STATIC ${pawl_images_sources})
target_include_directories(pawl_images PUBLIC ${PROJECT_SOURCE_DIR}/systems PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(pawl_images PUBLIC pawl pawl_server PRIVATE fmt::fmt Boost::json OpenSSL::Crypto CURL::libcurl
                      LibArchive::LibArchive)
