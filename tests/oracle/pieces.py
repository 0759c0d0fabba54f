"""Pieces of random batch scripts, by the language of the script.

Each is a part of a script of its own, prints the same each time, and names what it prints. Jobs'
numbers are printed after the word "job", where comparing finds them.
"""

from __future__ import annotations

JOB = "${SLURM_ARRAY_JOB_ID-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID+_$SLURM_ARRAY_TASK_ID}"
"""This job; SLURM_JOB_ID alone may stand for the other tasks of an array, too."""

SHELL = {
    "arguments": "printf 'argument <%s>\\n' \"$@\"",
    "input": "head -c 200",
    "files": "data=data$SLURM_ARRAY_TASK_ID; mkdir -p $data/deep; echo text > $data/deep/file; "
    "ln -s file $data/deep/link; mkfifo $data/pipe",
    "limits": "ulimit -a",
    "mask": "umask; nice",
    "folder": 'pwd; echo "script $0"',
    "person": "id; hostname",
    "processors": "nproc; grep -E 'Sig(Ign|Blk|Cgt)' /proc/self/status",
    "long output": "seq --format='line %.0f of a long output' 5000",
    "errors": "echo problem >&2; ls /nowhere",
    "quotes": "cat <<'EOF'\n$HOME `id` \\ ' \" é #SBATCH --nice\nEOF",
    "temporary file": 'file=$(mktemp) && dirname "$file" && rm "$file"',
    "temporary folder": "python3 -c 'import tempfile; print(tempfile.gettempdir())'",
    "function": "greet; echo $?",
    "pipe": "yes | head -n 2; echo $?",
    "left behind": "(sleep 400 > /dev/null 2>&1) &",
    "descriptors": "ls /proc/self/fd | wc -l",
    "home": 'cd && pwd; cd "$SLURM_SUBMIT_DIR"',
    "queue": 'squeue --noheader --me --format="job %A %j %T" '
    f"--jobs={JOB}",
    "hosts": 'scontrol show hostnames "$SLURM_JOB_NODELIST"',
    "comment": f'scontrol update JobId={JOB} Comment="from the job"',
    "step": "srun -n1 sh -c 'echo \"step $SLURM_STEP_ID task $SLURM_PROCID in $PWD\"'",
    "step that fails": "srun -n1 sh -c 'exit 3'; echo $?",
    "step that is killed": "srun -n1 sh -c 'kill -USR2 $$'; echo $?",
    "step's environment": "srun -n1 sh -c "
    "'cat /proc/$$/environ > environment-step$SLURM_ARRAY_TASK_ID'",
    "step's limits": "(ulimit -S -n 200; ulimit -c 0; srun -n1 sh -c 'ulimit -S -n; ulimit -c')",
    "step's input": "echo typed | srun -n1 cat",
    "step without a program": "srun -n1 /nowhere/program; echo $?",
    "step from a login shell": "bash -lc 'srun -n1 echo from a login shell'",
    "step by its path": "/usr/bin/srun -n1 echo by its path",
    "Slurm in a step": "srun -n1 sh -c 'scontrol show hostnames $SLURM_JOB_NODELIST'",
    "step in an empty environment":
    "env -i /usr/bin/srun --jobid=$SLURM_JOB_ID -n1 /bin/echo empty",
    "programs of a step": "printf '0 echo task %%t\\n' > tasks; srun -n1 --multi-prog tasks",
    "program that is broadcast": "program=./program$SLURM_ARRAY_TASK_ID; "
    "cp /bin/echo $program; srun -n1 --bcast=/tmp/oracle-$SLURM_JOB_ID $program broadcast; "
    "srun -n1 /tmp/oracle-$SLURM_JOB_ID again; rm -f /tmp/oracle-$SLURM_JOB_ID",
    "file that is broadcast": "sbcast --force /etc/os-release /tmp/oracle-$SLURM_JOB_ID; "
    "cmp /etc/os-release /tmp/oracle-$SLURM_JOB_ID; rm -f /tmp/oracle-$SLURM_JOB_ID",
}  # fmt: skip

PYTHON = {
    "arguments": "print('arguments', sys.argv[1:])",
    "input": "print('input', sys.stdin.read(200))",
    "files": "os.makedirs('data/deep', exist_ok=True); open('data/deep/file', 'w').write('text')",
    "streams": "print(sys.stdout.encoding, sys.stdout.isatty(), sys.stdin.isatty())",
    "folder": "print(os.getcwd(), sys.argv[0])",
    "temporary folder": "import tempfile; print(tempfile.gettempdir())",
    "processors": "print(len(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0))",
    "limits": "import resource; print([resource.getrlimit(n) for n in range(16)])",
    "step": "print(subprocess.call(['srun', '-n1', 'echo', 'from a step']))",
    "step that fails": "print(subprocess.call(['srun', '-n1', 'false']))",
    "hosts": "hosts = ['scontrol', 'show', 'hostnames', os.environ['SLURM_JOB_NODELIST']]\n"
    "print(subprocess.check_output(hosts))",
}  # fmt: skip

CSH = {
    "arguments": "foreach word ($argv:q)\n    echo argument $word:q\nend",
    "files": "mkdir -p data/deep; echo text > data/deep/file",
    "mask": "umask",
    "folder": "pwd",
    "person": "id",
    "step": "srun -n1 echo from a step",
    "queue": 'squeue --noheader --me --format="job %A %j %T" --jobs=$SLURM_JOB_ID',
    "hosts": "scontrol show hostnames $SLURM_JOB_NODELIST",
}

BEGIN = {
    "shell": 'cat /proc/$$/environ > "environment$SLURM_ARRAY_TASK_ID"\n',
    "python": "import os, signal, subprocess, sys, time\n"
    "task = os.environ.get('SLURM_ARRAY_TASK_ID', '')\n"
    "open('environment' + task, 'wb').write(open('/proc/self/environ', 'rb').read())\n"
    "sys.stdout.reconfigure(line_buffering=True)\n",
    "csh": "cat /proc/$$/environ > environment\n",
}
"""The script's environment as the kernel gave it, whatever the interpreter makes of it."""

ENDS = {
    "shell": ("", "exit 7", "kill -TERM $$", "kill -KILL $$", "false", "exec sh -c 'exit 5'"),
    "python": ("", "sys.exit(7)", "os.kill(os.getpid(), signal.SIGSEGV)", "os._exit(200)"),
    "csh": ("", "exit 7"),
}

# They note the signals that they get, until the runner has sent all of them (the file "over").
NOTES = {
    "shell": "for name in USR1 USR2 HUP TERM CONT WINCH; do\n"
    "    trap \"echo SIG$name >> signals\" $name\n"
    "done\n"
    "echo > ready\n"
    "while [ ! -e over ]; do sleep 0.1; done\n",
    "python": "if {child}:\n"
    "    note_in = 'signals' if os.fork() else 'signals-child'\n"
    "else:\n"
    "    note_in = 'signals'\n"
    "noted = []\n"
    "def note(number, _frame):\n"
    "    noted.append(time.monotonic())\n"
    "    with open(note_in, 'a') as stream:\n"
    "        print(signal.Signals(number).name, file=stream)\n"
    "for name in 'USR1 USR2 HUP TERM CONT WINCH'.split():\n"
    "    signal.signal(getattr(signal, 'SIG' + name), note)\n"
    "if note_in == 'signals':\n"
    "    time.sleep(0.5)\n"
    "    open('ready', 'w').close()\n"
    "while not os.path.exists('over'):\n"
    "    if {limited} and noted and time.monotonic() - noted[0] > 2:\n"
    "        break\n"
    "    time.sleep(0.05)\n"
    "if note_in != 'signals':\n"
    "    os._exit(0)\n",
}  # fmt: skip

ENVIRONMENT = (
    ("A", "1  2"),
    ("LINES_OF_TEXT", "ü\n3\n"),
    ("EMPTY", ""),
    ("BASH_FUNC_greet%%", "() {  echo hello\n}"),
    ("my.var", "1"),
    ("foo-bar", "2"),
    ("SINGULARITY_CLEANENV", "1"),
    ("SINGULARITY_CONTAIN", "1"),
    ("APPTAINER_BIND", "/opt/only-on-login"),
    ("APPTAINER_WRITABLE", "1"),
    ("APPTAINER_PWD", "/usr"),
    ("APPTAINERENV_PATH", "/nowhere"),
    ("APPTAINERENV_PREPEND_PATH", "/nowhere"),
    ("SINGULARITYENV_LC_ALL", "POSIX"),
    ("TMPDIR", "{folder}/tmp"),
    ("TMPDIR", "/nowhere"),
    ("LC_ALL", "C"),
    ("LANG", "tlh"),
    ("PYTHONPATH", "/nowhere/python"),
    ("LD_LIBRARY_PATH", "/nowhere/lib"),
    ("PS1", "$(date) > "),
    ("PROMPT_COMMAND", "echo prompt"),
    ("ENV", "/nowhere/profile"),
    ("BASH_ENV", "/nowhere/profile"),
    ("IFS", ":"),
    ("SLURM_EXIT_ERROR", "9"),
    ("SBATCH_COMMENT", "from the environment"),
    ("SRUN_CPUS_PER_TASK", "1"),
)
"""Variables of the shell that submits; "{folder}" is the folder of the run."""

OPTIONS = (
    ("--export=NONE",),
    ("--export=A,EMPTY,PATH",),
    ("--export=ALL,X=1",),
    ("--job-name=na me",),
    ("--comment=a 'comment'",),
    ("--ntasks=2", "--nodes=1"),
    ("--cpus-per-task=2",),
    ("--time=3",),
    ("--output=%x-%j.txt",),
    ("--error=errors-%j",),
    ("--input=input.txt",),
    ("--open-mode=append", "--output=output.txt"),
    ("--chdir=sub",),
    ("--array=1-2",),
    ("--propagate=NONE",),
    ("--propagate=NOFILE",),
    ("--no-requeue",),
    ("--nice=3",),
    ("--ntasks-per-node=1",),
    ("--hint=nomultithread",),
    ("--get-user-env",),
    ("--partition=short",),
)
"""Groups of options; one of a name counts."""
