# The `pawl` command.
find_package(CLI11 REQUIRED)
file(GLOB pawl_cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cpp)
add_executable(pawl_command ${pawl_cli_sources})
set_target_properties(pawl_command PROPERTIES OUTPUT_NAME pawl RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_include_directories(pawl_command PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(pawl_command PRIVATE PAWL_VERSION="${PROJECT_VERSION}")
target_link_libraries(pawl_command PRIVATE pawl pawl_server CLI11::CLI11 fmt::fmt)
