"""E2B's unmodified Python SDK builds templates on a Belljar server: steps, files, caching, tags, failures, start commands.

Needs only the SDK and its environment variables. Ends with status 1 at the first difference.
"""

import os
import tempfile
import time
import uuid

from e2b import BuildException, Sandbox, Template, wait_for_port

from lab.checks import check, checked


def fails(what, build):
    try:
        build()
    except BuildException as error:
        return str(error)
    check(what, "it was built", "an exception")


def builds(mark):
    name = f"sdk-{mark}"
    with tempfile.TemporaryDirectory() as directory:
        os.makedirs(f"{directory}/folder")
        with open(f"{directory}/folder/test.txt", "w") as file:
            file.write("from the client")
        os.symlink("test.txt", f"{directory}/folder/link.txt")
        template = (
            Template(file_context_path=directory)
            .from_template("base")
            .set_envs({"COLOUR": "red"})
            .copy("folder/*", "folder")
            .copy("folder/test.txt", "/srv/one.txt", user="root", mode=0o600)
            .run_cmd("echo $COLOUR > colour.txt")
            .run_cmd(["touch first", "touch second"])
            .run_cmd("id -un > /root/who", user="root")
            .make_symlink("colour.txt", "link")
            .set_workdir("/app")
            .run_cmd("pwd > where")
            .set_start_cmd("python3 -m http.server 8123", wait_for_port(8123))
        )
        logs = []
        info = Template.build(template, name, cpu_count=1, memory_mb=512, on_build_logs=lambda entry: logs.append(str(entry.message)))
        check("a build has ids", bool(info.template_id and info.build_id))
        check("it says what it does", any("RUN" in line for line in logs))
        check("the template exists", Template.exists(name))
        again = []
        Template.build(template, name, on_build_logs=lambda entry: again.append(str(entry.message)))
        check("an unchanged build is not run again", sum("CACHED" in line for line in again) >= 8)
    sandbox = Sandbox.create(name, timeout=120)
    try:
        said = sandbox.commands.run(
            "cat /home/user/folder/test.txt; echo; cat /home/user/folder/link.txt; echo; stat -c '%U %a' /srv/one.txt; cat /home/user/colour.txt;"
            "ls /home/user/first /home/user/second; cat /home/user/link /app/where; pwd; echo $COLOUR; sudo cat /root/who;"
            "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8123/"
        ).stdout
    finally:
        sandbox.kill()
    expected = "from the client\nfrom the client\nroot 600\nred\n/home/user/first\n/home/user/second\nred\n/app\n/app\nred\nroot\n200"
    check("all steps are in a new sandbox", said, expected)
    return name


def failures(mark):
    name = f"sdk-fails-{mark}"
    template = Template().from_template("base").run_cmd("echo fine").run_cmd("exit 7")
    check("a failing command", "failed to run command 'exit 7': exit status 7" in fails("a failing command", lambda: Template.build(template, name)))
    template = Template().from_template("base").run_cmd("whoami", user="root123")
    words = "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'"
    check("a user that is not there", words in fails("a user that is not there", lambda: Template.build(template, name)))
    template = Template().from_template("there-is-none")
    check("a base that is not there", "not found" in fails("a base that is not there", lambda: Template.build(template, name)))
    check("nothing was made", Template.exists(name), False)


def tags(name, mark):
    tagged = f"{name}:v1-{mark}"
    Template.build(Template().from_template(name).run_cmd("echo one > /app/version", user="root"), tagged)
    info = Template.assign_tags(tagged, ["stable", "production"])
    check("tags are assigned", sorted(info.tags), ["production", "stable"])
    check("all tags are listed", {tag.tag for tag in Template.get_tags(name)}, {"default", f"v1-{mark}", "stable", "production"})
    sandbox = Sandbox.create(f"{name}:stable", timeout=60)
    check("a sandbox of a tag", sandbox.commands.run("cat /app/version").stdout, "one\n")
    sandbox.kill()
    Template.remove_tags(name, ["production", "stable", f"v1-{mark}"])
    check("tags are removed", [tag.tag for tag in Template.get_tags(name)], ["default"])


def in_background(mark):
    info = Template.build_in_background(Template().from_template("base").skip_cache().run_cmd("sleep 2"), f"sdk-background-{mark}")
    check("it is under way", Template.get_build_status(info).status.value in ("building", "waiting"))
    while Template.get_build_status(info).status.value in ("building", "waiting"):
        time.sleep(0.2)
    check("it ends by itself", Template.get_build_status(info).status.value, "ready")


mark = uuid.uuid4().hex[:12]
name = builds(mark)
failures(mark)
tags(name, mark)
in_background(mark)
print(f"templates.py: {checked()} checks passed with e2b {__import__('importlib.metadata').metadata.version('e2b')}")
