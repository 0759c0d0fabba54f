# Completion for bash: the administrators' command slipway, with the actions, options and images of
# slipway images. SLIPWAY_IMAGES is the site's folder of images.
_slipway_admin() {
    local current=$2 previous=$3 action=${COMP_WORDS[2]:-} word
    COMPREPLY=()
    # "=" divides words.
    [[ $current != "=" ]] || current=
    [[ $previous != "=" ]] || previous=${COMP_WORDS[COMP_CWORD - 2]}
    if [[ $COMP_CWORD -eq 1 ]]; then
        word="apply apps backup check config images init logout maintenance move-database reload-proxy reload-web render restore rotate rotate-keys token web worker"
    elif [[ ${COMP_WORDS[1]} == maintenance ]]; then
        [[ $COMP_CWORD -ne 2 ]] || word="off on status"
        [[ $action != on || $current != -* ]] || word="--message --until"
    elif [[ ${COMP_WORDS[1]} != images ]]; then
        return
    elif [[ $COMP_CWORD -eq 2 ]]; then
        word="build list prune retire show test"
    elif [[ $previous == --definition ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
    elif [[ $previous == --images || $previous == --recipes ]]; then
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return
    elif [[ $current == -* ]]; then
        word=$(_slipway_admin_options "$action")
    else
        word=$(_slipway_admin_names "$action")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
}

_slipway_admin_options() {
    case $1 in
        build)
            echo --from --definition --base --build-arg --title --description --fakeroot --no-fakeroot \
                --if-changed --compression --on-cluster --srun --images --recipes
            ;;
        show) echo --packages --json --images --recipes ;;
        test) echo --images --recipes ;;
        retire) echo --undo ;;
        prune) echo --dry-run ;;
    esac
}

# Recipes for build and test, and what the site has for the others.
_slipway_admin_names() {
    local file folder=${SLIPWAY_IMAGES:-/srv/slipway/images} name=image.sif
    [[ $1 != build ]] || folder=images name=image.def
    [[ $1 != list ]] || return 0
    for file in "$folder"/*/*/"$name"; do
        [[ ! -e $file && ! -L $file ]] || file=${file%/*}
        [[ $file == *"$name" ]] || echo "${file#"$folder"/}"
    done
}

complete -o filenames -F _slipway_admin slipway
