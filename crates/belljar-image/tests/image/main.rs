//! Everything the crate promises, on real files: hostile archives, layers, images, a registry that speaks HTTP, a Debian built from packages.

#[cfg(test)]
mod archives;
#[cfg(test)]
mod catalog;
#[cfg(test)]
mod hostile_archives;
#[cfg(test)]
mod images;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod oci;
#[cfg(test)]
mod producers;
#[cfg(test)]
mod recipes;
#[cfg(test)]
mod registry;
#[cfg(test)]
mod registry_server;
