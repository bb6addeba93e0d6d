# SPDX-License-Identifier: Apache-2.0
# Rooms: small static libraries, one for each folder of sources, which know only the rooms below them.
#
# tellerline_room(NAME FOLDER LINKS library... [USES library...]) makes the library tl_NAME of FOLDER's .c files (main.c
# left out).
#   LINKS  the rooms below, and third-party libraries whose headers this room's headers include
#   USES   libraries which only its .c files need
#
# The build refuses an upward include: no room has the top of the source tree in its include path. Each offers
# ${CMAKE_BINARY_DIR}/rooms/NAME, where FOLDER is a symbolic link to the sources and generated/ holds what is made for the
# room. So "common/store/redis.h" is found only by who links tl_store. The global property TELLERLINE_ROOMS lists all libraries.
function(tellerline_room name folder)
    cmake_parse_arguments(PARSE_ARGV 2 ROOM "" "" "LINKS;USES")
    if(ROOM_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "tellerline_room(${name} ${folder}): what is ${ROOM_UNPARSED_ARGUMENTS}?")
    endif()
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c)
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/${folder}/main.c)
    add_library(tl_${name} STATIC ${sources})
    tellerline_view(tl_${name} ${name} ${folder})
    target_link_libraries(tl_${name} PUBLIC ${ROOM_LINKS} PRIVATE ${ROOM_USES})
    set_property(GLOBAL APPEND PROPERTY TELLERLINE_ROOMS tl_${name})
endfunction()

# tellerline_view(TARGET NAME FOLDER): TARGET, and what links it, finds FOLDER/x.h.
function(tellerline_view target name folder)
    set(view ${CMAKE_BINARY_DIR}/rooms/${name})
    cmake_path(GET folder PARENT_PATH parent)
    file(MAKE_DIRECTORY ${view}/${parent} ${view}/generated)
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${view}/${folder} SYMBOLIC)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
        target_include_directories(${target} INTERFACE ${view})
    else()
        target_include_directories(${target} PUBLIC ${view})
    endif()
    set_target_properties(${target} PROPERTIES TELLERLINE_VIEW ${view})
endfunction()

# tellerline_program(BINARY FOLDER LINKS library...): the executable of FOLDER/main.c.
function(tellerline_program binary folder)
    cmake_parse_arguments(PARSE_ARGV 2 PROGRAM "" "" "LINKS")
    add_executable(${binary} ${CMAKE_SOURCE_DIR}/${folder}/main.c)
    target_link_libraries(${binary} PRIVATE ${PROGRAM_LINKS})
    install(TARGETS ${binary} RUNTIME DESTINATION bin)
endfunction()
