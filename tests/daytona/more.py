"""Daytona's unmodified Python SDK against a Belljar server: terminals, repositories, volumes, snapshots, forks, programs that listen, what may go out,
and what is not done here.

Needs only the SDK and its environment variables (DAYTONA_API_KEY, DAYTONA_API_URL). Ends with status 1 at the first difference.
"""

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from importlib.metadata import version

from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaError, DaytonaNotFoundError, VolumeMount
from daytona.common.pty import PtySize

from lab.checks import check, checked, raises

NEW = tuple(int(part) for part in version("daytona").split(".")) >= (0, 200, 0)


def terminals(sandbox):
    process, name = sandbox.process, f"tty {uuid.uuid4().hex}"
    shown = bytearray()
    terminal = process.create_pty_session(name, cwd="/tmp", envs={"A": "x"}, pty_size=PtySize(rows=30, cols=100))
    listed = process.list_pty_sessions()
    check("it is listed", name in [one.id for one in getattr(listed, "sessions", listed)])
    raises("its name is its own", DaytonaError, lambda: process.create_pty_session(name))
    info = process.get_pty_session_info(name)
    check("its size", (info.cols, info.rows, info.active, info.cwd), (100, 30, True, "/tmp"))
    check("another size", process.resize_pty_session(name, PtySize(rows=40, cols=120)).cols, 120)
    terminal.send_input("stty size; pwd; echo $A-$TERM; exit 7\n")
    result = terminal.wait(on_data=shown.extend, timeout=30)
    text = shown.decode()
    check("what it shows", [word in text for word in ("40 120", "/tmp", "x-xterm-256color")], [True] * 3)
    check("its end", result.exit_code, 7)
    raises("it is gone", DaytonaError, lambda: process.get_pty_session_info(name))
    other = process.create_pty_session(name)
    second = process.connect_pty_session(name)
    process.kill_pty_session(name)
    check("how it ends", (other.wait(timeout=30).exit_code, second.wait(timeout=30).exit_code), (137, 137))
    raises("there is no such terminal", DaytonaError, lambda: process.kill_pty_session("none"))


def repositories(sandbox):
    git, run = sandbox.git, lambda command: sandbox.process.exec(command).result
    run("git init -q --bare -b main /home/user/origin.git && git -c init.defaultBranch=main init -q seed && cd seed && git -c user.name=a -c user.email=a@b "
        "commit -q --allow-empty -m first && git push -q /home/user/origin.git HEAD:main")
    git.clone("/home/user/origin.git", "clone")
    status = git.status("clone")
    check("a clone", (status.current_branch, status.file_status, status.branch_published), ("main", [], True))
    sandbox.fs.upload_file(b"x\n", "clone/a b.txt")
    check("a new file", [(one.name, one.worktree.value) for one in git.status("clone").file_status], [("a b.txt", "Untracked")])
    git.add("clone", ["a b.txt"])
    check("it is added", [(one.name, one.staging.value) for one in git.status("clone").file_status], [("a b.txt", "Added")])
    commit = git.commit("clone", "second\n\nwith 'words'; $(none)", "Ada", "ada@example.com")
    check("a commit", run("cd clone && git rev-parse HEAD").strip(), commit.sha)
    check("how far ahead", git.status("clone").ahead, 1)
    git.push("clone")
    check("it was pushed", run("git -C origin.git rev-parse main").strip(), commit.sha)
    git.create_branch("clone", "side")
    check("branches", sorted(git.branches("clone").branches), ["main", "side"])
    check("the new one is there", git.status("clone").current_branch, "side")
    git.checkout_branch("clone", "main")
    git.delete_branch("clone", "side")
    check("one is left", git.branches("clone").branches, ["main"])
    git.pull("clone")
    if NEW:
        git.init("fresh", initial_branch="trunk")
        git.configure_user("Ada", "ada@example.com", scope="local", path="fresh")
        check("a setting", git.get_config("user.name", scope="local", path="fresh"), "Ada")
        check("no setting", git.get_config("user.none"), None)
        git.remote_add("fresh", "up", "/home/user/origin.git", fetch=True)
        check("a remote", [(one.name, one.url) for one in git.remotes("fresh").remotes], [("up", "/home/user/origin.git")])
        git.reset("fresh", mode="hard", target="up/main")
        check("what came from there", sandbox.fs.download_file("fresh/a b.txt"), b"x\n")
        sandbox.fs.upload_file(b"y\n", "fresh/a b.txt")
        git.restore("fresh", ["a b.txt"])
        check("as it was", sandbox.fs.download_file("fresh/a b.txt"), b"x\n")
    raises("there is no such branch", DaytonaError, lambda: git.checkout_branch("clone", "none"))
    raises("no repository", DaytonaError, lambda: git.status("/tmp"))
    raises("an option is no name", DaytonaError, lambda: git.create_branch("clone", "--orphan"))
    raises("an address is no option", DaytonaError, lambda: git.clone("--upload-pack=touch /tmp/pwned", "x"))
    check("nothing was run", run("ls /tmp/pwned 2>/dev/null"), "")


def volumes(daytona):
    name = f"v-{uuid.uuid4().hex[:8]}"
    volume = daytona.volume.create(name)
    check("it is ready", volume.state if isinstance(volume.state, str) else volume.state.value, "ready")
    check("it is found", daytona.volume.get(name).id, volume.id)
    mount = [VolumeMount(volume_id=volume.id, mount_path="/home/user/data")]
    first, second = (daytona.create(CreateSandboxFromSnapshotParams(volumes=mount)) for _ in range(2))
    first.fs.upload_file(b"shared", "data/x")
    check("the other sees it", second.fs.download_file("data/x"), b"shared")
    first.delete()
    second.delete()
    daytona.volume.delete(volume)
    # Older SDKs hand on what their generated clients raise.
    raises("it is gone", DaytonaNotFoundError if NEW else Exception, lambda: daytona.volume.get(name))


def snapshots(daytona, sandbox):
    items = daytona.snapshot.list()
    check("templates are listed", "base" in [one.name for one in getattr(items, "items", items)])
    if not NEW:
        return
    sandbox.fs.upload_file(b"1", "state")
    name = f"snap-{uuid.uuid4().hex[:8]}"
    sandbox.create_snapshot(name)
    made = daytona.create(CreateSandboxFromSnapshotParams(snapshot=name))
    check("its files", made.fs.download_file("state"), b"1")
    made.delete()
    daytona.snapshot.delete(daytona.snapshot.get(name))
    raises("it is gone", DaytonaError, lambda: daytona.create(CreateSandboxFromSnapshotParams(snapshot=name)))
    fork = sandbox.fork()
    check("a fork", (fork.fs.download_file("state"), fork.id != sandbox.id), (b"1", True))
    fork.delete()


def fetched(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}").get("source")


def programs(sandbox):
    sandbox.fs.upload_file(b"page", "www/index.html")
    sandbox.process.create_session("server")
    from daytona import SessionExecuteRequest

    request = SessionExecuteRequest(command="cd www && python3 -u -m http.server 8000", run_async=True)
    command = sandbox.process.execute_session_command("server", request)
    for _ in range(300):
        if sandbox.process.exec("curl -s -o /dev/null localhost:8000").exit_code == 0:
            break
    link = sandbox.get_preview_link(8000)
    check("nobody is let in without a token", fetched(link.url)[0], 401)
    check("nor with a wrong one", fetched(link.url, **{"X-Daytona-Preview-Token": "x"})[0], 401)
    check("with the token", fetched(link.url, **{"X-Daytona-Preview-Token": link.token}), (200, b"page"))
    check("with the key", fetched(link.url, Authorization=f"Bearer {os.environ['DAYTONA_API_KEY']}"), (200, b"page"))
    check("the token did not reach the program", link.token in sandbox.process.get_session_command_logs("server", command.cmd_id).stdout, False)
    other = sandbox.get_preview_link(8001)
    check("it is for one port", fetched(link.url, **{"X-Daytona-Preview-Token": other.token})[0], 401)
    if NEW:
        check("a signed link", fetched(sandbox.create_signed_preview_url(8000, 60).url), (200, b"page"))
        sandbox.set_public(True)
        check("anybody", fetched(link.url), (200, b"page"))
        sandbox.set_public(False)
        check("nobody again", fetched(link.url)[0], 401)
    sandbox.process.delete_session("server")


def links(sandbox):
    if not NEW:
        return
    sandbox.fs.upload_file(b"linked", "linked.txt")
    link = sandbox.download_url("/home/user/linked.txt", 60)
    check("a link to a file", fetched(link), (200, b"linked"))
    check("to that one", fetched(link.replace("linked.txt", "other.txt"))[0], 401)
    sent = b"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nsent\r\n--B--\r\n"
    request = urllib.request.Request(sandbox.upload_url("/home/user/sent.txt"), data=sent, headers={"Content-Type": "multipart/form-data; boundary=B"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        check("a link to send one", answer.status, 200)
    check("what was sent", sandbox.fs.download_file("sent.txt"), b"sent")
    sandbox.rotate_signing_key()
    check("it is worth nothing any more", fetched(link)[0], 401)
    check("another is", fetched(sandbox.download_url("/home/user/linked.txt"))[0], 200)


def asked(path, method="GET", body=None, key=None):
    headers = {"Authorization": f"Bearer {key or os.environ['DAYTONA_API_KEY']}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(os.environ["DAYTONA_API_URL"] + path, method=method, headers=headers, data=data)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def refusals(sandbox):
    for path, method in [(f"/sandbox/{sandbox.id}/archive", "POST"), (f"/sandbox/{sandbox.id}/ssh-access", "POST"), ("/object-storage/push-access", "GET")]:
        status, error = asked(path, method, {} if method == "POST" else None)
        check(f"{path} is not done", (status, error["statusCode"], error["code"], error["source"]), (501, 501, "NOT_SUPPORTED", "DAYTONA_API"))
    status, error = asked("/sandbox", "POST", {"buildInfo": {"dockerfileContent": "FROM debian"}})
    check("an image", (status, "Dockerfile" in error["message"]), (501, True))
    check("what is not known", asked("/no/such/thing")[0], 404)
    check("a wrong key", asked("/sandbox", key="bj_" + "0" * 32)[0], 401)
    raises("a desktop", DaytonaError, lambda: sandbox.computer_use.start())
    raises("a language server", DaytonaError, lambda: sandbox.create_lsp_server("python", "x").start())
    if "OTHER_API_KEY" in os.environ:
        key = os.environ["OTHER_API_KEY"]
        check("another project's sandbox is not there", asked(f"/sandbox/{sandbox.id}", key=key)[0], 404)
        check("nor by its name", asked(f"/sandbox/{sandbox.name}".replace(" ", "%20"), key=key)[0], 404)
        inside = f"{os.environ['DAYTONA_API_URL'].removesuffix('/api')}/toolbox/{sandbox.id}/work-dir"
        check("nor is its toolbox", fetched(inside, Authorization=f"Bearer {key}"), (404, "DAYTONA_DAEMON"))


def main():
    daytona = Daytona()
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(name=f"more {uuid.uuid4().hex}"))
    for part in (terminals, repositories, programs, links, refusals):
        part(sandbox)
    snapshots(daytona, sandbox)
    volumes(daytona)
    sandbox.delete()
    print(f"daytona {version('daytona')} (Python): {checked()} checks of terminals, repositories, volumes, snapshots, ports, links and refusals")


if __name__ == "__main__":
    main()
