# SPDX-License-Identifier: Apache-2.0
# Completion of tellerline for bash. What can follow, the command itself knows: `tellerline complete`.
_tellerline()
{
    local line word words=()
    # Not COMP_WORDS, which bash has cut at each "=".
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=("")
    word=${words[-1]}
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files) mapfile -t COMPREPLY < <(compgen -f -- "$word") && compopt -o filenames ;;
        :folders) mapfile -t COMPREPLY < <(compgen -d -- "$word") && compopt -o filenames ;;
        *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${words[0]/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null)
    # Bash replaces only what stands behind the "=".
    [[ $word == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%%=*}="}")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -F _tellerline tellerline
