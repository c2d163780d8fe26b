//! Inserts styles, scripts and the document into the template of the report page.

/// The page with placeholders.
const TEMPLATE: &str = include_str!("../../../../web/report.html");

/// The page of a running command, with placeholders.
const LIVE_TEMPLATE: &str = include_str!("../../../../web/live.html");

/// The placeholder of the live page's own script, and the script.
const LIVE_SCRIPT: (&str, &str) = ("LIVE_JS", include_str!("../../../../web/live.js"));

/// The placeholder of the document.
const DATA: &str = "REPORT_DATA";

/// Contents of the other placeholders.
const PARTS: [(&str, &str); 29] = [
    ("UPLOT_CSS", include_str!("../../../../web/vendor/uPlot/uPlot.min.css")),
    ("UPLOT_JS", include_str!("../../../../web/vendor/uPlot/uPlot.iife.min.js")),
    ("REPORT_CSS", include_str!("../../../../web/report.css")),
    ("REPORT_JS", include_str!("../../../../web/report.js")),
    ("REPORT_JS:report/align.js", include_str!("../../../../web/report/align.js")),
    ("REPORT_JS:report/bins.js", include_str!("../../../../web/report/bins.js")),
    ("REPORT_JS:report/chart.js", include_str!("../../../../web/report/chart.js")),
    ("REPORT_JS:report/compare.js", include_str!("../../../../web/report/compare.js")),
    ("REPORT_JS:report/data.js", include_str!("../../../../web/report/data.js")),
    ("REPORT_JS:report/dom.js", include_str!("../../../../web/report/dom.js")),
    ("REPORT_JS:report/figures.js", include_str!("../../../../web/report/figures.js")),
    ("REPORT_JS:report/format.js", include_str!("../../../../web/report/format.js")),
    ("REPORT_JS:report/legend.js", include_str!("../../../../web/report/legend.js")),
    ("REPORT_JS:report/marks.js", include_str!("../../../../web/report/marks.js")),
    ("REPORT_JS:report/metrics.js", include_str!("../../../../web/report/metrics.js")),
    ("REPORT_JS:report/paint.js", include_str!("../../../../web/report/paint.js")),
    ("REPORT_JS:report/reproduce.js", include_str!("../../../../web/report/reproduce.js")),
    ("REPORT_JS:report/run.js", include_str!("../../../../web/report/run.js")),
    ("REPORT_JS:report/seeds.js", include_str!("../../../../web/report/seeds.js")),
    ("REPORT_JS:report/status.js", include_str!("../../../../web/report/status.js")),
    ("REPORT_JS:report/surface.js", include_str!("../../../../web/report/surface.js")),
    ("REPORT_JS:report/summary.js", include_str!("../../../../web/report/summary.js")),
    ("REPORT_JS:report/sweep.js", include_str!("../../../../web/report/sweep.js")),
    ("REPORT_JS:report/tables.js", include_str!("../../../../web/report/tables.js")),
    ("REPORT_JS:report/theme.js", include_str!("../../../../web/report/theme.js")),
    ("REPORT_JS:report/tiles.js", include_str!("../../../../web/report/tiles.js")),
    ("REPORT_JS:report/tournament.js", include_str!("../../../../web/report/tournament.js")),
    ("REPORT_JS:report/vocabulary.js", include_str!("../../../../web/report/vocabulary.js")),
    ("REPORT_JS:report/tune.js", include_str!("../../../../web/report/tune.js")),
];

/// The page with `document`, which must be JSON.
///
/// Replacement is one pass from left to right. Inserted text is not searched, so that a scenario may contain
/// the text of a placeholder.
pub fn fill(document: &str) -> String {
    fill_template(TEMPLATE, document)
}

/// The page of a running command, which asks that command for its data.
pub fn live_page() -> String {
    fill_template(LIVE_TEMPLATE, "")
}

fn fill_template(template: &str, document: &str) -> String {
    let mut page = String::with_capacity(template.len() + 200_000 + document.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("/*") {
        page.push_str(before);
        let (name, behind) = after.split_once("*/").unwrap_or((after, ""));
        if name == DATA {
            push_escaped(&mut page, document);
        } else if name == LIVE_SCRIPT.0 {
            page.push_str(LIVE_SCRIPT.1);
        } else if let Some((_, part)) = PARTS.iter().find(|(known, _)| *known == name) {
            page.push_str(part);
        } else {
            // A comment that is not a placeholder is kept.
            page.extend(["/*", name, "*/"]);
        }
        rest = behind;
    }
    page.push_str(rest);
    page
}

/// Replaces `<` by `\u003c`. In JSON, `<` occurs only within strings, where both mean the same. Nothing in the
/// document can then end its element or begin a comment.
fn push_escaped(page: &mut String, document: &str) {
    for (i, piece) in document.split('<').enumerate() {
        if i > 0 {
            page.push_str("\\u003c");
        }
        page.push_str(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_of_the_template_is_known_and_each_part_is_used_once() {
        let comments = TEMPLATE.split("/*").skip(1).filter_map(|text| text.split_once("*/"));
        let mut named: Vec<&str> = comments.map(|(name, _)| name).collect();
        let mut known: Vec<&str> = PARTS.iter().map(|(name, _)| *name).chain([DATA]).collect();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
    }

    #[test]
    fn the_live_page_has_all_its_scripts() {
        let comments = LIVE_TEMPLATE.split("/*").skip(1).filter_map(|text| text.split_once("*/"));
        for (name, _) in comments {
            let known = PARTS.iter().any(|(part, _)| *part == name) || name == LIVE_SCRIPT.0;
            assert!(known, "no part is called {name}");
        }
        assert!(live_page().contains("EventSource"));
    }

    #[test]
    fn a_document_with_words_of_the_template_comes_out_as_it_went_in() {
        let text = "</script><!-- /*REPORT_JS*/ /*REPORT_DATA*/";
        let page = fill(&serde_json::to_string(text).expect("text"));
        let start = "<script type=\"application/json\" id=\"report-data\">";
        let (_, from) = page.split_once(start).expect("the element of the document");
        let (data, behind) = from.split_once("</script>").expect("its end");
        assert_eq!(serde_json::from_str::<String>(data).expect("JSON"), text);
        assert!(behind.contains("uPlot"), "the scripts come after the document");
    }
}
