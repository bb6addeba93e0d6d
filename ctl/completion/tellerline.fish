# SPDX-License-Identifier: Apache-2.0
# Completion of tellerline for fish. What can follow, the command itself knows: `tellerline complete`.
function __tellerline_complete
    set -l words (commandline -opc)
    set -l current "$(commandline -ct)"
    for line in ($words[1] complete -- $words[2..] $current 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $current
            case :folders
                __fish_complete_directories $current
            case '*'
                echo $line
        end
    end
end
complete -c tellerline -f -a '(__tellerline_complete)'
