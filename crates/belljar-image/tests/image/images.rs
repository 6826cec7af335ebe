//! Small images, made here byte by byte and told as an OCI layout, as the output of `docker save`, or by a registry.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::archives::{Archive, Entry};

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let hash: [u8; 32] = Sha256::digest(bytes).into();
    format!("sha256:{}", hash.iter().map(|b| format!("{b:02x}")).collect::<String>())
}

/// How a layer is packed.
#[derive(Clone, Copy)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// An image: layers, lowest first, and its run configuration.
#[derive(Clone)]
pub(crate) struct Image {
    pub(crate) layers: Vec<(Archive, Packing)>,
    pub(crate) config: Value,
    pub(crate) architecture: &'static str,
}

impl Image {
    /// Three layers in three packings: the second takes things away, the third adds an application.
    pub(crate) fn sample() -> Self {
        let base = Archive::new()
            .add(Entry::directory("bin"))
            .add(Entry::file("bin/sh", b"shell").mode(0o755))
            .add(Entry::file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\napp:x:1234:1234::/srv:/bin/sh\n"))
            .add(Entry::file("etc/secret", b"to be removed"))
            .add(Entry::file("var/cache/old", b"hidden by opacity"))
            .add(Entry::directory("tmp").mode(0o1777));
        let removal = Archive::new()
            .add(Entry::file("etc/.wh.secret", b""))
            .add(Entry::file("var/cache/.wh..wh..opq", b""))
            .add(Entry::file("var/cache/new", b"new"));
        let application = Archive::new().add(Entry::file("srv/app", b"application").owner(1234, 1234).mode(0o755));
        let config = json!({
            "Env": ["PATH=/bin", "GREETING=a=b", "broken"], "User": "app", "WorkingDir": "/srv/data",
            "Entrypoint": ["/srv/app"], "Cmd": ["--help"],
        });
        Self { layers: vec![(base, Packing::Gzip), (removal, Packing::Plain), (application, Packing::Zstd)], config, architecture: "amd64" }
    }

    fn packed(&self) -> Vec<(Vec<u8>, &'static str)> {
        let pack = |(archive, packing): &(Archive, Packing)| match packing {
            Packing::Plain => (archive.tar(), "application/vnd.oci.image.layer.v1.tar"),
            Packing::Gzip => (archive.gzip(), "application/vnd.oci.image.layer.v1.tar+gzip"),
            Packing::Zstd => (archive.zstd(), "application/vnd.oci.image.layer.v1.tar+zstd"),
        };
        self.layers.iter().map(pack).collect()
    }

    fn configuration(&self) -> Vec<u8> {
        let diff_ids: Vec<String> = self.layers.iter().map(|(archive, _)| sha256(&archive.tar())).collect();
        let rootfs = json!({"type": "layers", "diff_ids": diff_ids});
        json!({"architecture": self.architecture, "os": "linux", "config": self.config, "rootfs": rootfs}).to_string().into_bytes()
    }

    /// The blobs by digest, and the digest of the manifest.
    pub(crate) fn blobs(&self) -> (BTreeMap<String, Vec<u8>>, String) {
        let mut blobs = BTreeMap::new();
        let mut put = |bytes: Vec<u8>, kind: &str| {
            let descriptor = json!({"mediaType": kind, "digest": sha256(&bytes), "size": bytes.len()});
            blobs.insert(sha256(&bytes), bytes);
            descriptor
        };
        let config = put(self.configuration(), "application/vnd.oci.image.config.v1+json");
        let layers: Vec<Value> = self.packed().into_iter().map(|(bytes, kind)| put(bytes, kind)).collect();
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers});
        let manifest = put(manifest.to_string().into_bytes(), kind);
        let digest = manifest["digest"].as_str().unwrap().to_owned();
        (blobs, digest)
    }

    /// The files of an OCI layout.
    pub(crate) fn layout(&self, tag: &str) -> BTreeMap<String, Vec<u8>> {
        let (blobs, manifest) = self.blobs();
        let size = blobs[&manifest].len();
        let annotations = json!({"org.opencontainers.image.ref.name": tag});
        let index = json!({"schemaVersion": 2, "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": manifest, "size": size, "annotations": annotations,
        }]});
        let mut files: BTreeMap<String, Vec<u8>> =
            blobs.into_iter().map(|(digest, bytes)| (format!("blobs/{}", digest.replace(':', "/")), bytes)).collect();
        files.insert("index.json".into(), index.to_string().into_bytes());
        files.insert("oci-layout".into(), br#"{"imageLayoutVersion": "1.0.0"}"#.to_vec());
        files
    }

    /// The output of `docker save` as docker wrote it for years: a directory a layer, repeated layers as links.
    pub(crate) fn docker_archive(&self, tag: &str) -> Archive {
        let config = self.configuration();
        let config_name = format!("{}.json", sha256(&config).trim_start_matches("sha256:"));
        let mut archive = Archive::new().add(Entry::file_of_any_name(&config_name, &config));
        let mut names: Vec<String> = Vec::new();
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for (number, (layer, _)) in self.layers.iter().enumerate() {
            let tar = layer.tar();
            let name = format!("layer{number}/layer.tar");
            archive = match seen.get(&sha256(&tar)) {
                Some(first) => archive.add(Entry::symlink(&name, &format!("../{first}"))),
                None => archive.add(Entry::file(&name, &tar)),
            };
            seen.entry(sha256(&tar)).or_insert_with(|| name.clone());
            names.push(name);
        }
        let manifest = json!([{"Config": config_name, "RepoTags": [tag], "Layers": names}]);
        archive.add(Entry::file("manifest.json", manifest.to_string().as_bytes()))
    }
}

/// Files as a directory.
pub(crate) fn write_files(directory: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Files as an archive.
pub(crate) fn archive_files(files: &BTreeMap<String, Vec<u8>>) -> Archive {
    files.iter().fold(Archive::new(), |archive, (name, bytes)| archive.add(Entry::file_of_any_name(name, bytes)))
}
