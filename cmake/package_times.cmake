# SPDX-License-Identifier: Apache-2.0
# Run by cpack on the staged files: all are of the time SOURCE_DATE_EPOCH, so that the same sources make the same
# package, whenever and wherever it is built.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
    return()
endif()
execute_process(
    COMMAND find ${CPACK_TEMPORARY_DIRECTORY} -exec touch --no-dereference --date=@$ENV{SOURCE_DATE_EPOCH} {} +
    COMMAND_ERROR_IS_FATAL ANY)
