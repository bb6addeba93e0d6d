# SPDX-License-Identifier: Apache-2.0
# Run with -P: writes OUT, the functions of the library (cmake/library.cmake) that the SCRIPTS are. A file that calls
# `entry` is a part of the library as it is. Any other script is preceded by the definitions of the PROTOCOL
# (cmake/protocol.cmake), by the PRELUDE and by the parts that its header names: "-- Parts: NAME...", in one line or more,
# stands for the files NAME.lua, in this order, of the script's own folder or of the prelude's; those of the prelude come
# first. A part has a dot in its name (mend.state, prelude.records) and is no script itself. The line "-- Flags: NAME" gives
# its function these flags.
#
# The parts of the prelude become a function of their own, which is called at once, and what follows them another one
# within. Redis makes all functions of a script at each call of it; and for each local variable of the running function
# that a new function uses, Lua walks a list of those used before. One of an enclosing function is found at once. That
# saves 5 % of the instructions that Redis runs for an apply of one join. A function can use 60 local variables of those
# around it.

# Reads a file without the line that names its licence.
function(read_lua file result)
    file(READ ${file} text)
    string(REGEX REPLACE "^-- SPDX-License-Identifier: [^\n]*\n" "" text "${text}")
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Reads the parts of a script: those of the prelude, and its own.
function(read_parts script prelude_folder of_prelude own)
    file(STRINGS ${script} names REGEX "^-- Parts: ")
    string(REPLACE "-- Parts:" "" names "${names}")
    string(REPLACE ";" " " names "${names}")
    separate_arguments(names UNIX_COMMAND "${names}")
    get_filename_component(folder ${script} DIRECTORY)
    set(own_text "")
    set(prelude_text "")
    foreach(name IN LISTS names)
        if(EXISTS ${folder}/${name}.lua)
            read_lua(${folder}/${name}.lua part)
            string(APPEND own_text "${part}")
        else()
            read_lua(${prelude_folder}/${name}.lua part)
            string(APPEND prelude_text "${part}")
        endif()
    endforeach()
    set(${of_prelude} "${prelude_text}" PARENT_SCOPE)
    set(${own} "${own_text}" PARENT_SCOPE)
endfunction()

function(read_flags script result)
    file(STRINGS ${script} line REGEX "^-- Flags: " LIMIT_COUNT 1)
    string(REGEX REPLACE "^-- Flags: *" "" flags "${line}")
    if(flags)
        set(flags " '${flags}' ")
    endif()
    set(${result} "{${flags}}" PARENT_SCOPE)
endfunction()

# Replaces each use of NAME by its VALUE. What stands in quotes is text.
function(write_value name value text result)
    string(REPLACE "." "\\." name "${name}")
    foreach(turn RANGE 1) # twice, because two uses may share the character between them
        string(REGEX REPLACE "([^A-Za-z0-9_.'\"])${name}([^A-Za-z0-9_'\"])" "\\1${value}\\2" text "${text}")
    endforeach()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Writes the values of constants where they are used. A constant is a name in capitals at the beginning of a line, set to
# a number, as in "local PORTION = 250", or to a table of numbers, or of digits in quotes, as in
# "local WHY = { raised = 1 }"; several names may share a line. It is not set again, and has its name for itself in all
# parts of a script.
function(write_constants text result)
    while(text MATCHES "\nlocal ([A-Z][A-Z0-9_, ]*) = ([0-9][0-9., ]*)(--|\n)")
        set(end "${CMAKE_MATCH_3}")
        string(REPLACE "," ";" names "${CMAKE_MATCH_1}")
        string(REPLACE "," ";" values "${CMAKE_MATCH_2}")
        string(REPLACE "${CMAKE_MATCH_0}" "\n${end}" text "${text}")
        foreach(name value IN ZIP_LISTS names values)
            string(STRIP "${name}" name)
            string(STRIP "${value}" value)
            write_value("${name}" "${value}" "${text}" text)
        endforeach()
    endwhile()
    string(REGEX MATCHALL "\nlocal [A-Z]+ = { [a-z_]+ = '?[0-9]+'?(,[ \n]+[a-z_]+ = '?[0-9]+'?)* }" tables "${text}")
    foreach(table IN LISTS tables)
        string(REGEX MATCH "[A-Z]+" name "${table}")
        string(REGEX MATCHALL "[a-z_]+ = '?[0-9]+'?" members "${table}")
        foreach(member IN LISTS members)
            string(REPLACE " = " ";" member "${member}")
            list(GET member 0 key)
            list(GET member 1 value)
            write_value("${name}.${key}" "${value}" "${text}" text)
        endforeach()
        string(REPLACE "${table}" "\n" without "${text}")
        if(NOT without MATCHES "[^A-Za-z0-9_]${name}[^A-Za-z0-9_]")
            set(text "${without}")
        endif()
    endforeach()
    if(text MATCHES "local [0-9][^\n]*")
        message(FATAL_ERROR "two variables of a script have the name of a constant: ${CMAKE_MATCH_0}")
    endif()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Leaves out the functions of the parts that the script does not use: those that begin at the beginning of a line, and
# whose name stands nowhere else. One that makes others is kept: they begin there, too.
function(drop_unused text result)
    set(again TRUE)
    while(again)
        set(again FALSE)
        string(REGEX MATCHALL "\nlocal function [a-z_0-9]+" heads "${text}")
        foreach(head IN LISTS heads)
            string(REPLACE "\nlocal function " "" name "${head}")
            string(FIND "${text}" "${head}(" start)
            string(SUBSTRING "${text}" 0 ${start} before)
            string(SUBSTRING "${text}" ${start} -1 after)
            string(REPLACE "${head}(" "" others "${after}")
            if(name MATCHES "^load_" OR "${before}${others}" MATCHES "[^A-Za-z0-9_]${name}[^A-Za-z0-9_]")
                continue()
            endif()
            string(FIND "${after}" "\nend\n" length)
            math(EXPR length "${length} + 4")
            string(SUBSTRING "${after}" ${length} -1 after)
            set(text "${before}${after}")
            set(again TRUE)
        endforeach()
    endwhile()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/protocol.cmake)
protocol_read(${PROTOCOL})
read_lua(${PRELUDE} prelude)
get_filename_component(prelude_folder ${PRELUDE} DIRECTORY)
set(content "")
foreach(script IN LISTS SCRIPTS)
    get_filename_component(name ${script} NAME_WLE)
    if(script STREQUAL PRELUDE OR name MATCHES "\\.")
        continue()
    endif()
    read_lua(${script} body)
    if("\n${body}" MATCHES "\nentry\\(")
        string(APPEND content "do\n${body}end\n")
        continue()
    endif()
    read_parts(${script} ${prelude_folder} of_prelude own)
    read_flags(${script} flags)
    set(of_script "return (function()\n${own}${body}end)()\n")
    write_constants("\n${lua}${prelude}return (function()\n${of_prelude}${of_script}end)()\n" text)
    drop_unused("${text}" text)
    string(REGEX REPLACE "\n *--[^\n]*" "" text "${text}")
    string(APPEND content "entry('${name}', ${flags}, function(KEYS, ARGV)${text}end)\n")
endforeach()
file(WRITE ${OUT} "${content}")
