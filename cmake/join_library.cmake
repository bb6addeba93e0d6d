# SPDX-License-Identifier: Apache-2.0
# Run with -P: joins the library (cmake/library.cmake) of HEAD, the definitions of the PROTOCOL as the table `defs`, the
# MODULES, each of which fills the table of its name, and the FUNCTIONS. Each file but the first stands between `do` and
# `end`. Writes it as LUA, and as a C string, TEXT; and HEADER, the names. No line is changed.
include(${CMAKE_CURRENT_LIST_DIR}/protocol.cmake)
protocol_read(${PROTOCOL})

# Without the line that names the licence.
function(read_lua file result)
    file(READ ${file} text)
    string(REGEX REPLACE "^-- SPDX-License-Identifier: [^\n]*\n" "" text "${text}")
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

set(names defs)
set(body "")
foreach(module IN LISTS MODULES)
    cmake_path(GET module STEM name)
    list(APPEND names ${name})
    read_lua(${module} text)
    string(APPEND body "do ---- ${name}\n${text}end\n")
endforeach()
foreach(function IN LISTS FUNCTIONS)
    read_lua(${function} text)
    string(APPEND body "do\n${text}end\n")
endforeach()
read_lua(${HEAD} head)
list(TRANSFORM names REPLACE ".+" "{}" OUTPUT_VARIABLE tables)
list(JOIN names ", " names)
list(JOIN tables ", " tables)
set(text "${head}local ${names} = ${tables}\n${lua}${body}")

string(SHA1 hash "${text}")
string(SUBSTRING ${hash} 0 12 hash)
string(REPLACE "@HASH@" ${hash} text "${text}")
set(header "/* Made by cmake/join_library.cmake; do not edit. */\n#pragma once\n#define TL_LIBRARY \"tellerline_${hash}\"\n")
string(REGEX MATCHALL "\nentry\\('[a-z_]+'" entries "${text}")
list(SORT entries)
foreach(entry IN LISTS entries)
    string(REGEX MATCH "[a-z_]+'$" name "${entry}")
    string(REPLACE "'" "" name "${name}")
    string(TOUPPER ${name} constant)
    string(APPEND header "#define TL_FN_${constant} \"tl_${hash}_${name}\"\n")
endforeach()
file(WRITE ${HEADER} "${header}")
file(WRITE ${LUA} "${text}")

string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${TEXT} "/* Made by cmake/join_library.cmake; do not edit. */\n#pragma once\n"
    "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\nstatic const char library_text[] =\n    \"${text}\";\n")
