//! A client of the native API, for the command line and for tests.
