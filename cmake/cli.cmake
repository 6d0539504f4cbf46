# The `pawl` command.
find_package(CLI11 REQUIRED)
file(GLOB pawl_cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cpp)
add_executable(pawl_command ${pawl_cli_sources})
set_target_properties(pawl_command PROPERTIES OUTPUT_NAME pawl RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_include_directories(pawl_command PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(pawl_command PRIVATE PAWL_VERSION="${PROJECT_VERSION}")
target_link_libraries(pawl_command PRIVATE pawl pawl_server pawl_images pawl_workers CLI11::CLI11 fmt::fmt
                      OpenSSL::SSL OpenSSL::Crypto)
target_precompile_headers(pawl_command PRIVATE ${pawl_precompiled})
# The manual page and the completions are written by the command that they describe.
set(pawl_manual_dir ${PROJECT_BINARY_DIR}/manual)
file(MAKE_DIRECTORY ${pawl_manual_dir})
add_custom_command(TARGET pawl_command POST_BUILD VERBATIM
                   COMMAND pawl_command man > ${pawl_manual_dir}/pawl.1
                   COMMAND pawl_command completion bash > ${pawl_manual_dir}/pawl
                   COMMAND pawl_command completion zsh > ${pawl_manual_dir}/_pawl
                   COMMAND pawl_command completion fish > ${pawl_manual_dir}/pawl.fish)
