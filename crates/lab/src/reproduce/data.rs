//! The data files of the papers, compiled into the binary, so that `reproduce` needs no files.

/// One folder below `papers/`.
#[derive(Clone, Copy, Debug)]
pub struct Folder {
    /// Name of the folder in items and rows.
    pub name: &'static str,
    /// Path of the folder below `papers/`.
    pub path: &'static str,
    /// Name and text of every data file in the folder.
    pub files: &'static [(&'static str, &'static str)],
}

impl Folder {
    /// The text of a file of this folder.
    pub fn file(&self, name: &str) -> Option<&'static str> {
        self.files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }
}

macro_rules! files {
    ($path:literal, $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../papers/", $path, "/", $name)))),+]
    };
}

/// Every folder, in the order in which reports show them.
pub const FOLDERS: [Folder; 6] = [
    Folder {
        name: "slides2013",
        path: "slides2013",
        files: files!(
            "slides2013",
            "case-1.toml",
            "case-2.toml",
            "case-3.toml",
            "expected.toml",
            "inventory.toml",
            "reasons.toml",
            "tmaxblock-10-10-100.toml",
            "tmaxblock-10-10-200.toml",
            "tmaxblock-10-50-100.toml",
            "tmaxblock-10-50-200.toml",
            "tmaxblock-100-100-100.toml",
            "tmaxblock-100-100-200.toml",
            "tmaxblock-150-50-100.toml",
            "tmaxblock-150-50-200.toml",
            "tmaxblock-50-10-100.toml",
            "tmaxblock-50-10-200.toml",
            "tmaxblock-50-150-100.toml",
            "tmaxblock-50-150-200.toml",
        ),
    },
    Folder {
        name: "kuhn2014",
        path: "kuhn2014",
        files: files!(
            "kuhn2014",
            "case-1-200-45.toml",
            "case-1-200-500.toml",
            "case-2-100-35.toml",
            "case-2-100-500.toml",
            "case-2-200-45.toml",
            "case-2-200-500.toml",
            "expected.toml",
            "inventory.toml",
            "reasons.toml",
        ),
    },
    Folder {
        name: "sarwar2013",
        path: "sarwar2013",
        files: files!(
            "sarwar2013",
            "delay-aware.toml",
            "equation5.csv",
            "expected.toml",
            "figures-1-2.toml",
            "forward-delay.toml",
            "inventory.toml",
            "large-bandwidth.toml",
            "long-run.toml",
            "reasons.toml",
            "table1.csv",
            "table2.csv",
        ),
    },
    Folder {
        name: "wallace2014",
        path: "wallace2014",
        files: files!(
            "wallace2014",
            "expected.toml",
            "inventory.toml",
            "ns2.csv",
            "one-path.toml",
            "reasons.toml",
            "two-paths.toml",
        ),
    },
    Folder {
        name: "alheid2016",
        path: "alheid2016",
        files: files!(
            "alheid2016",
            "expected.toml",
            "inventory.toml",
            "link.toml",
            "numbers.csv",
            "reasons.toml",
            "scenario-1.toml",
            "scenario-2.toml",
            "scenario-3.toml",
            "scenario-4.toml",
        ),
    },
    Folder {
        name: "ns2",
        path: "peers/ns2",
        files: files!("peers/ns2", "blocking.csv", "kuhn.csv", "reasons.toml", "sarwar.csv"),
    },
];

/// The folder of this name.
pub fn folder(name: &str) -> Option<&'static Folder> {
    FOLDERS.iter().find(|folder| folder.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_data_file_of_the_papers_is_carried_along() {
        let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers");
        for folder in &FOLDERS {
            let entries = std::fs::read_dir(papers.join(folder.path)).unwrap();
            let there: BTreeSet<String> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name.ends_with(".toml") || name.ends_with(".csv"))
                .collect();
            let carried = folder.files.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(there, carried, "{}", folder.path);
        }
    }
}
