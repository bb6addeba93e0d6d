# SPDX-License-Identifier: Apache-2.0
# Static files become byte arrays in the room's "generated/NAME.h": FILE.EXT is `tl_web_FILE_EXT`, compressed
# `tl_web_FILE_EXT_gzip` (gzip -9n), and the start of its SHA-256 is the macro TL_WEB_FILE_EXT_HASH. The macro
# TL_WEB_FILES(ROW) is ROW("FILE.EXT", FILE_EXT, EXT in capitals, "the hash") for each of them.
#
# Included, this file defines tellerline_embed_web(TARGET NAME PATTERN...) for a room; patterns start at the top of the
# source tree. Run with -P -DOUT=FILE -DFILES=LIST it writes the header.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(TELLERLINE_EMBED_WEB ${CMAKE_CURRENT_LIST_FILE})
    function(tellerline_embed_web target name)
        list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE patterns)
        file(GLOB FILES CONFIGURE_DEPENDS ${patterns})
        get_target_property(view ${target} TELLERLINE_VIEW)
        set(HEADER ${view}/generated/${name}.h)
        add_custom_command(
            OUTPUT ${HEADER}
            COMMAND ${CMAKE_COMMAND} -DOUT=${HEADER} "-DFILES=${FILES}" -P ${TELLERLINE_EMBED_WEB}
            DEPENDS ${FILES} ${TELLERLINE_EMBED_WEB}
            VERBATIM)
        target_sources(${target} PRIVATE ${HEADER})
    endfunction()
    return()
endif()

# The bytes of a file as the elements of a C array, in lines of 20.
function(to_c_bytes file result)
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(....,....,....,....,....,....,....,....,....,....,....,....,....,....,....,....,....,....,....,....,)"
           "\\1\n" bytes "${bytes}")
    set(${result} "${bytes}" PARENT_SCOPE)
endfunction()

# The scripts of worker/web go into every waiting page, or into the pages of others: without their comments and
# indentation they weigh a quarter less. The comment at the top is left out, unless it begins with "/*!", and so are lines
# that are nothing but a comment, and comments at the end of a line, behind two blanks or more. The line
# "// include: NAME" stands for that script.
function(without_comments file result)
    set(${result} ${file} PARENT_SCOPE)
    if(NOT file MATCHES "/worker/web/[^/]*\\.js$")
        return()
    endif()
    file(READ ${file} text)
    get_filename_component(folder ${file} DIRECTORY)
    while(text MATCHES "\n *// include: ([a-z]+\\.js)")
        set(line "${CMAKE_MATCH_0}")
        file(READ ${folder}/${CMAKE_MATCH_1} part)
        string(REPLACE "${line}" "\n${part}" text "${text}")
    endwhile()
    string(REGEX REPLACE "(^|\n)/\\*[^!]([^*]|\\*[^/])*\\*/\n" "\\1" text "${text}")
    string(REGEX REPLACE "\n *//[^\n]*" "" text "${text}")
    string(REGEX REPLACE "  +//[^\n\"']*\n" "\n" text "${text}")
    string(REGEX REPLACE "\n[ \n]+" "\n" text "${text}")
    get_filename_component(folder ${OUT} DIRECTORY)
    get_filename_component(name ${file} NAME)
    file(WRITE ${folder}/${name} "${text}")
    set(${result} ${folder}/${name} PARENT_SCOPE)
endfunction()

set(content "/* Made by cmake/embed_web.cmake; do not edit. */\n#pragma once\n")
set(rows "")
foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE "[^a-z0-9]" "_" symbol ${name})
    string(TOUPPER ${symbol} upper)
    string(REGEX REPLACE "^.*_" "" extension ${upper})
    without_comments(${file} file)
    file(SHA256 ${file} hash)
    string(SUBSTRING ${hash} 0 12 hash)
    execute_process(COMMAND gzip -9n -c INPUT_FILE ${file} OUTPUT_FILE ${OUT}.gz COMMAND_ERROR_IS_FATAL ANY)
    to_c_bytes(${file} plain)
    to_c_bytes(${OUT}.gz compressed)
    file(REMOVE ${OUT}.gz)
    string(APPEND content "#define TL_WEB_${upper}_HASH \"${hash}\"\n"
           "static const unsigned char tl_web_${symbol}[] = {\n${plain}};\n"
           "static const unsigned char tl_web_${symbol}_gzip[] = {\n${compressed}};\n")
    string(APPEND rows " \\\n    ROW(\"${name}\", ${symbol}, ${extension}, \"${hash}\")")
endforeach()
file(WRITE ${OUT} "${content}#define TL_WEB_FILES(ROW)${rows}\n")
