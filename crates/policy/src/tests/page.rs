//! docs/reference/rules.md: every table is evaluated with the file above it.

use super::*;

const PAGE: &str = include_str!("../../../../docs/reference/rules.md");

#[test]
fn every_row_of_the_reference_page_holds() {
    let mut rules = String::new();
    let mut in_yaml = false;
    let mut rows = 0;
    let mut sets = 0;
    for line in PAGE.lines() {
        if line == "```yaml" {
            (in_yaml, rules) = (true, String::new());
        } else if in_yaml && line == "```" {
            in_yaml = false;
            sets += 1;
            file::read(&rules).unwrap();
        } else if in_yaml {
            rules.push_str(line);
            rules.push('\n');
        } else if line.starts_with("| `") {
            let cells: Vec<&str> =
                line.trim_matches(['|', ' ']).split(" | ").map(|c| c.trim_matches('`')).collect();
            let [tool, arguments, verdict, rule] = cells.as_slice() else { panic!("{line}") };
            let e = ask(&rules, tool, arguments);
            assert_eq!((e.verdict.as_str(), e.rule.as_str()), (*verdict, *rule), "{line}");
            rows += 1;
        }
    }
    assert!(rows >= 40 && sets >= 6, "{rows} rows, {sets} sets");
}
