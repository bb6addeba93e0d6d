# Every Lua script of a folder becomes a C string: FOLDER/NAME.lua is `tl_script_NAME` in
# "generated/FOLDER_scripts.h". A script is preceded by common/prelude.lua, which holds what all of them use,
# and by its parts, FOLDER/NAME.PART.lua.
function(tellerline_embed_lua target folder)
    file(GLOB SCRIPTS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.lua)
    list(REMOVE_ITEM SCRIPTS ${CMAKE_SOURCE_DIR}/common/prelude.lua)
    if(NOT SCRIPTS)
        return()
    endif()
    set(HEADER ${CMAKE_BINARY_DIR}/generated/generated/${folder}_scripts.h)
    add_custom_command(
        OUTPUT ${HEADER}
        COMMAND ${CMAKE_COMMAND} -DOUT=${HEADER} -DPRELUDE=${CMAKE_SOURCE_DIR}/common/prelude.lua
                "-DSCRIPTS=${SCRIPTS}" -P ${CMAKE_SOURCE_DIR}/cmake/embed_scripts.cmake
        DEPENDS ${SCRIPTS} ${CMAKE_SOURCE_DIR}/common/prelude.lua ${CMAKE_SOURCE_DIR}/cmake/embed_scripts.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${HEADER})
endfunction()
