// SPDX-License-Identifier: Apache-2.0
use super::json::Json;

/// Whether a selector matches the labels of an object; `None` if the selector is invalid.
pub(super) fn selects(selector: &str, obj: &Json) -> Option<bool> {
    let label = |key: &str| match obj.at(&["metadata", "labels", key]) {
        Json::Str(s) => Some(s.as_str()),
        _ => None,
    };
    let mut all = true;
    for term in terms(selector) {
        let term = term.trim();
        if term.is_empty() {
            continue;
        }
        all &= if let Some((key, values)) = set(term, " notin ") {
            label(key).map_or(true, |v| !values.contains(&v))
        } else if let Some((key, values)) = set(term, " in ") {
            label(key).map_or(false, |v| values.contains(&v))
        } else if let Some((key, value)) = term.split_once("!=") {
            label(key.trim()) != Some(value.trim())
        } else if let Some((key, value)) = term.split_once('=') {
            label(key.trim()) == Some(value.trim_start_matches('=').trim())
        } else if let Some(key) = term.strip_prefix('!') {
            label(key.trim()).is_none()
        } else if term.contains(|c: char| c.is_whitespace() || c == '(' || c == '>' || c == '<') {
            return None;
        } else {
            label(term).is_some()
        };
    }
    Some(all)
}

/// Splits at the commas that are not in parentheses.
fn terms(selector: &str) -> Vec<&str> {
    let (mut list, mut start, mut depth) = (Vec::new(), 0, 0);
    for (i, c) in selector.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                list.push(&selector[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    list.push(&selector[start..]);
    list
}

fn set<'a>(term: &'a str, operator: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (key, list) = term.split_once(operator)?;
    let values = list.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some((key.trim(), values.split(',').map(str::trim).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::json::map;
    use super::*;

    #[test]
    fn selectors_are_those_of_kubectl() {
        let labels = map([("app", "web".into()), ("tier", "front".into())]);
        let obj = map([("metadata", map([("labels", labels)]))]);
        for (selector, want) in [
            ("", Some(true)),
            ("app=web", Some(true)),
            ("app==web,tier=front", Some(true)),
            ("app=web,tier=back", Some(false)),
            ("app!=web", Some(false)),
            ("other!=x", Some(true)),
            ("app", Some(true)),
            ("!app", Some(false)),
            ("!other", Some(true)),
            ("app in (db, web),tier", Some(true)),
            ("app notin (db,web)", Some(false)),
            ("other in (x)", Some(false)),
            ("app > 3", None),
        ] {
            assert_eq!(selects(selector, &obj), want, "{selector}");
        }
    }
}
