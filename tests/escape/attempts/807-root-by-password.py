# Becomes root by su, by logging in with no password, by adding a user to /etc/passwd.
# Why it matters: an empty or known password of root would make the policy void.
# When it works: a command runs as root.
# needs: user-only
# control: weakened: sudo
import os
import subprocess

from attempt import blocked, escaped, run


def attempt():
    answers = []
    for password in ("", "root", "user", "toor"):
        answer = subprocess.run(["su", "-c", "id -u", "root"], input=password + "\n", capture_output=True, text=True)
        if answer.stdout.strip() == "0":
            escaped(f"su took the password {password!r}")
        answers.append(answer.stderr.strip()[-40:])
    for path in ("/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/sudoers.d/x", "/etc/ld.so.preload", "/etc/cron.d/x", "/root/.bashrc"):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
            escaped(f"{path} is writable")
        except OSError:
            pass
    blocked("; ".join(dict.fromkeys(answers)))


run(attempt)
