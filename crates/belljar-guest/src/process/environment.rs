//! What a new process gets from the sandbox, its user and its caller: environment, directory, program.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;

use belljar_guest_protocol::Failure;
use belljar_types::{Invalid, ProcessSpec};

use super::launch::{Launch, Wiring};
use crate::users::User;

/// Where programs are looked for when nobody says.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Defaults for all processes.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Replaced when the sandbox becomes another one's copy.
    pub(crate) env: RefCell<BTreeMap<String, String>>,
    pub(crate) workdir: Option<String>,
}

/// Variables by name, bytes as on Linux.
pub(crate) type Variables = BTreeMap<Vec<u8>, Vec<u8>>;

impl Environment {
    /// Everything a start of this spec needs.
    pub(crate) fn launch(&self, spec: &ProcessSpec, user: &User) -> Result<Launch, Failure> {
        let mut variables = self.variables(user);
        if spec.pty.is_some() {
            variables.entry(b"TERM".to_vec()).or_insert_with(|| b"xterm-256color".to_vec());
        }
        variables.extend(spec.env.iter().map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes())));
        // Lets a deadline find what has left the process's session.
        variables.insert(super::kill::MARK.into(), spec.id.as_str().into());
        let cwd = self.directory(spec, user);
        let wiring = match spec.pty {
            Some(size) => Wiring::Terminal(size),
            None => Wiring::Pipes { stdin: spec.stdin },
        };
        launch(&spec.argv, &variables, cwd, user, wiring)
    }

    /// The user's own variables, and the sandbox's over them.
    pub(crate) fn variables(&self, user: &User) -> Variables {
        let own: [(&str, &[u8]); 5] = [
            ("PATH", PATH.as_bytes()),
            ("HOME", &user.home),
            ("USER", user.name.as_bytes()),
            ("LOGNAME", user.name.as_bytes()),
            ("SHELL", &user.shell),
        ];
        let mut variables: Variables = own.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect();
        variables.extend(self.env.borrow().iter().map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes())));
        variables
    }

    fn directory(&self, spec: &ProcessSpec, user: &User) -> Vec<u8> {
        match (&spec.cwd, &self.workdir) {
            (Some(cwd), _) => crate::files::absolute(cwd.as_bytes(), user),
            (None, Some(workdir)) => crate::files::absolute(workdir.as_bytes(), user),
            // Users without a home are common in images; that is no reason not to start anything.
            (None, None) if !std::path::Path::new(crate::files::as_os(&user.home)).is_dir() => b"/".to_vec(),
            (None, None) => user.home.clone(),
        }
    }
}

/// Puts a start together; `argv` is looked up in the `PATH` of the new environment.
pub(crate) fn launch(argv: &[Vec<u8>], variables: &Variables, cwd: Vec<u8>, user: &User, wiring: Wiring) -> Result<Launch, Failure> {
    let program = argv.first().map(Vec::as_slice).unwrap_or_default();
    let path = variables.get(b"PATH".as_slice()).map_or(PATH.as_bytes(), Vec::as_slice);
    let env = variables.iter().map(|(name, value)| text("env", [name.as_slice(), b"=", value.as_slice()].concat()));
    Ok(Launch {
        programs: candidates(program, path).into_iter().map(|candidate| text("argv[0]", candidate)).collect::<Result<_, _>>()?,
        argv: argv.iter().map(|arg| text("argv", arg.clone())).collect::<Result<_, _>>()?,
        env: env.collect::<Result<_, _>>()?,
        cwd: text("cwd", cwd)?,
        user: user.as_child(),
        wiring,
    })
}

fn text(field: &str, bytes: Vec<u8>) -> Result<CString, Failure> {
    CString::new(bytes).map_err(|error| Invalid::new(field, "no NUL byte", error.into_vec()).into())
}

fn candidates(program: &[u8], path: &[u8]) -> Vec<Vec<u8>> {
    if program.contains(&b'/') {
        return vec![program.to_vec()];
    }
    let directories = path.split(|b| *b == b':').map(|dir| if dir.is_empty() { b".".as_slice() } else { dir });
    directories.map(|dir| [dir, b"/", program].concat()).collect()
}
