# Mine since 2016.
PS1='$(echo "\h has $(ls ~ | wc -l) files" >&2)\u@\h:\w\$ '
export PS1
export PATH=$HOME/bin:$PATH
export PYTHONPATH=$HOME/python
export LD_LIBRARY_PATH=$HOME/lib

# Of my old account here.
export SBATCH_PARTITION=short
export SBATCH_TIMELIMIT=3
export SBATCH_MEM_PER_NODE=150
export SBATCH_WAIT=1
export SLURM_TIME_FORMAT=relative
export SQUEUE_FORMAT='%.18i %.9P %.30j %.8u %.2t'
export SQUEUE_USERS=otto
export SACCT_FORMAT=JobID,JobName%30,State,Elapsed
export SINFO_FORMAT='%P %a %l'

export APPTAINER_BIND=/opt/only-on-login
export SINGULARITY_BINDPATH=/opt/only-on-login
export SINGULARITY_CLEANENV=1
export APPTAINER_CACHEDIR=/scratch/otto

alias rm='rm -i' cp='cp -i' mv='mv -i' ls='ls --color=always'
set -o noclobber
stty erase '^H'
shopt -s nullglob

# >>> conda initialize >>>
__conda_setup="$('/opt/conda/bin/conda' 'shell.bash' 'hook' 2> /dev/null)"
if [ $? -eq 0 ]; then
    eval "$__conda_setup"
elif [ -f "/opt/conda/etc/profile.d/conda.sh" ]; then
    . "/opt/conda/etc/profile.d/conda.sh"
fi
unset __conda_setup
# <<< conda initialize <<<

echo "Welcome, $USER. You have mail."
