# libpawl: the public headers in include/pawl and the rooms under src/ that implement them.
file(GLOB_RECURSE pawl_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/pawl/*.hpp)
file(GLOB_RECURSE pawl_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
list(FILTER pawl_sources EXCLUDE REGEX "/src/(cli|server)/")

add_library(pawl ${pawl_sources})
add_library(pawl::pawl ALIAS pawl)
target_sources(pawl PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${pawl_headers})
target_include_directories(pawl PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_features(pawl PUBLIC cxx_std_23)
target_link_libraries(pawl PUBLIC Threads::Threads Boost::headers PRIVATE fmt::fmt Boost::json SQLite::SQLite3
                      PkgConfig::libpq OpenSSL::Crypto)
# What nearly every source includes. Only the standard library and fmt: a change of our own compiles what it touches.
set(pawl_precompiled <algorithm> <chrono> <functional> <map> <memory> <mutex> <optional> <string> <unordered_map> <vector>
                     <fmt/format.h>)
target_precompile_headers(pawl PRIVATE ${pawl_precompiled})
set_target_properties(pawl PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON POSITION_INDEPENDENT_CODE ON)
