//! One command in a throw-away sandbox over the current directory, without a server.
