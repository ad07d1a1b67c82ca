// SPDX-License-Identifier: Apache-2.0
/// Guesses the resource of a kind by those rules of kubebuilder that names of kinds need.
pub(crate) fn guess(kind: &str) -> String {
    let s = kind.to_ascii_lowercase();
    for (end, plural) in PLURALS {
        if let Some(stem) = s.strip_suffix(end) {
            return format!("{stem}{plural}");
        }
    }
    s + "s"
}

/// Endings and their plurals; the first that matches is used. guest-sdk/go has the same table.
#[rustfmt::skip]
const PLURALS: &[(&str, &str)] = &[
    ("person", "people"), ("child", "children"), ("mouse", "mice"), ("human", "humans"),
    ("woman", "women"), ("index", "indices"), ("vertex", "vertices"), ("vortex", "vortices"),
    ("trix", "trices"), ("criterion", "criteria"), ("fish", "fish"), ("data", "data"),
    ("media", "media"), ("information", "information"), ("equipment", "equipment"),
    ("chassis", "chassis"), ("sis", "ses"), ("us", "uses"), ("ss", "sses"), ("s", "s"),
    ("ch", "ches"), ("sh", "shes"), ("x", "xes"), ("iz", "izzes"), ("zz", "zzes"), ("ay", "ays"),
    ("ey", "eys"), ("oy", "oys"), ("quy", "quies"), ("uy", "uys"), ("y", "ies"), ("ano", "anos"),
    ("io", "ios"), ("lo", "los"), ("oo", "oos"), ("to", "tos"), ("o", "oes"), ("lf", "lves"),
    ("eaf", "eaves"), ("fe", "ves"), ("atum", "ata"), ("ium", "ia"),
];

#[cfg(test)]
mod tests {
    /// The host checks the same table with the library of kubebuilder.
    #[test]
    fn guess_agrees_with_the_host() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../host/kubeapi/kinds/testdata/plurals.txt");
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let (kind, want) = line.split_once(' ').unwrap();
            assert_eq!(super::guess(kind), want, "{kind}");
        }
    }
}
