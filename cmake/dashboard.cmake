# The dashboard's files, built beforehand into web/dist (see docs/dashboard.md), become part of the server library,
# so that neither building nor running it needs Node or any other file.
file(GLOB_RECURSE dashboard_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/web/dist
     ${PROJECT_SOURCE_DIR}/web/dist/*.gz)
if(NOT "index.html.gz" IN_LIST dashboard_files)
  message(FATAL_ERROR "web/dist/index.html.gz is absent; it belongs to the sources (npm run build in web/ makes it)")
endif()

set(dashboard_inputs "")
set(dashboard_assembly "")
set(dashboard_symbols "")
set(dashboard_table "")
set(number 0)
foreach(file IN LISTS dashboard_files)
  set(path ${PROJECT_SOURCE_DIR}/web/dist/${file})
  list(APPEND dashboard_inputs ${path})
  string(REGEX REPLACE "\\.gz$" "" name ${file})
  set(symbol pawl_dashboard_${number})
  string(APPEND dashboard_assembly
         "    \"${symbol}: .incbin \\\"${path}\\\"\\n\"\n    \"${symbol}_end: .byte 0\\n\"\n")
  string(APPEND dashboard_symbols "extern const char ${symbol}[];\nextern const char ${symbol}_end[];\n")
  string(APPEND dashboard_table "      {\"/${name}\", content(${symbol}, ${symbol}_end)},\n")
  math(EXPR number "${number} + 1")
endforeach()

set(dashboard_source ${PROJECT_BINARY_DIR}/generated/dashboard_files.cpp)
configure_file(${PROJECT_SOURCE_DIR}/cmake/dashboard_files.cpp.in ${dashboard_source} @ONLY)
# Neither the compiler nor Ninja sees what .incbin reads, and the file does not suffer company in one compilation.
set_source_files_properties(${dashboard_source} PROPERTIES OBJECT_DEPENDS "${dashboard_inputs}"
                            SKIP_UNITY_BUILD_INCLUSION ON)
target_sources(pawl_server PRIVATE ${dashboard_source})
