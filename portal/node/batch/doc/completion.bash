# Completion for bash: options of slipway sbatch, srun and salloc, and the site's images.
_slipway() {
    local current=$2 previous=$3 images=${SLIPWAY_BATCH_SETTINGS:-/etc/slipway/batch.json}
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "sbatch srun salloc" -- "$current")
        return
    fi
    # "=" divides words.
    [[ $current != "=" ]] || current=
    [[ $previous != "=" ]] || previous=${COMP_WORDS[COMP_CWORD - 2]}
    case $previous in
        --image)
            mapfile -t COMPREPLY < <(compgen -W "$(_slipway_images "$images")" -- "$current")
            [[ ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -X '!*.sif' -- "$current")
            ;;
        --mount) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        *)
            if [[ $current == -* ]]; then
                local ours="--image= --mount= --fgpu= --gpu-kind= --shm= --env-file= --dry-run"
                mapfile -t COMPREPLY < <(compgen -W "$ours" -- "$current")
                [[ ${COMPREPLY[0]:-} != *= ]] || compopt -o nospace
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
            fi
            ;;
    esac
}

# The file has one key in each line.
_slipway_images() {
    local environment='' key value
    while IFS='"' read -r _ key _ value _; do
        case $key in
            environment) environment=$value ;;
            version) [[ -z $environment || -z $value ]] || echo "$environment/$value" ;;
        esac
    done 2> /dev/null < "$1"
}

complete -o filenames -F _slipway slipway
