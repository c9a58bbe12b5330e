//! Tables as CSV: a header line, then one line a row; a missing value is empty.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{ReportError, create_folder};
use crate::table::{Table, Value};

/// Writes every table that has rows as `<name>.csv` into `directory`, which is made if missing.
///
/// # Errors
/// When the folder or a file cannot be written.
pub fn write_csv<'a>(
    directory: &Path,
    tables: impl IntoIterator<Item = &'a Table>,
) -> Result<Vec<PathBuf>, ReportError> {
    create_folder(directory)?;
    let mut written = Vec::new();
    for table in tables.into_iter().filter(|table| table.rows() > 0) {
        let path = directory.join(table.name()).with_extension("csv");
        let failed = || ReportError::file(&path);
        let mut file = BufWriter::new(File::create(&path).map_err(failed())?);
        write_table(table, &mut file).and_then(|()| file.flush()).map_err(failed())?;
        written.push(path);
    }
    Ok(written)
}

/// `text` as a spreadsheet takes it for a text: one that begins a formula gets an apostrophe before it.
fn plain(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}").into() } else { text.into() }
}

fn write_table(table: &Table, into: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(into);
    writer.write_record(table.columns().iter().map(|column| column.name.as_str()))?;
    for row in 0..table.rows() {
        for column in table.columns() {
            match column.values.get(row) {
                None => writer.write_field("")?,
                Some(Value::Text(text)) => writer.write_field(plain(text).as_ref())?,
                Some(Value::Count(count)) => writer.write_field(count.to_string())?,
                Some(Value::Number(number)) => writer.write_field(number.to_string())?,
            }
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{comparison, flow, run};
    use crate::tables::Tables;

    fn text(table: &Table) -> String {
        let mut bytes = Vec::new();
        write_table(table, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn axes_become_columns_and_missing_samples_stay_empty() {
        let tables = Tables::new(&comparison());
        assert_eq!(
            text(&tables.flow_series),
            "run,scenario,cc,queue,seed,flow,time_s,goodput_bps,cwnd_bytes,srtt_ms\n\
             1,dsl,fs-at,droptail,7,web,0,0,14480,\n\
             1,dsl,fs-at,droptail,7,web,0.1,3250000,28960,91.25\n\
             2,dsl,cubic,droptail,7,web,0,0,14480,\n\
             2,dsl,cubic,droptail,7,web,0.1,3250000,28960,91.25\n"
        );
        assert_eq!(
            text(&tables.events),
            "run,scenario,cc,queue,seed,time_s,flow,event\n\
             1,dsl,fs-at,droptail,7,0.1,web,recovery\n\
             2,dsl,cubic,droptail,7,0.1,web,recovery\n"
        );
    }

    #[test]
    fn flows_and_queues_carry_their_units_in_the_column_names() {
        let tables = Tables::new(&comparison()[..1]);
        assert_eq!(
            text(&tables.flows),
            "run,scenario,cc,queue,seed,flow,algorithm,colour,start_s,completed_s,delivered_bytes,goodput_bps,\
             packets_sent,packets_lost,packets_marked,retransmissions,timeouts,spurious,window_cuts,\
             rtt_min_ms,rtt_mean_ms,rtt_max_ms,rate_mean_bps,rate_deviation_bps,rate_min_bps,rate_max_bps\n\
             1,dsl,fs-at,droptail,7,web,fs-at,#0077bb,0.5,,3400000,3400000,100,3,2,4,0,0,1,90,120.5,300,,,,\n"
        );
        assert_eq!(
            text(&tables.queues),
            "run,scenario,cc,queue,seed,link,discipline,packets,bytes,utilisation,backlog_mean_packets,\
             backlog_mean_bytes,backlog_max_packets,backlog_max_bytes,delay_mean_ms,delay_p50_ms,delay_p95_ms,\
             delay_p99_ms,delay_max_ms,dropped_overflow,dropped_early,lost_on_link,marked\n\
             1,dsl,fs-at,droptail,7,downlink,droptail,2000,3000000,0.985,12.25,18375,65,97500,7.2,6,12,15,18,\
             3,0,0,2\n"
        );
    }

    #[test]
    fn an_axis_that_shares_the_name_of_a_column_is_told_apart() {
        let runs = [run(&[("link", "a,\"b\"")], vec![flow("f", "reno", 1)], vec![])];
        let csv = text(&Tables::new(&runs).runs);
        assert!(csv.starts_with("run,scenario,axis_link,seed,name"), "{csv}");
        assert!(csv.contains("\n1,dsl,\"a,\"\"b\"\"\",7,"), "{csv}");
    }

    #[test]
    fn a_name_that_a_spreadsheet_would_compute_is_a_text() {
        let runs = [run(&[("link", "=HYPERLINK(\"http://x\")")], vec![flow("@f", "reno", 1)], vec![])];
        let tables = Tables::new(&runs);
        let (csv, flows) = (text(&tables.runs), text(&tables.flows));
        assert!(csv.contains(",\"'=HYPERLINK(\"\"http://x\"\")\","), "{csv}");
        assert!(flows.contains(",'@f,reno,"), "{flows}");
    }

    #[test]
    fn only_tables_with_rows_become_files_and_their_bytes_do_not_vary() {
        let folder = tempfile::tempdir().unwrap();
        let runs = comparison();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        let written = write_csv(&first, &Tables::new(&runs)).unwrap();
        write_csv(&second, &Tables::new(&runs)).unwrap();
        assert_eq!(written.len(), 6);
        for path in &written {
            let name = path.file_name().unwrap();
            assert_eq!(std::fs::read(path).unwrap(), std::fs::read(second.join(name)).unwrap());
        }
        let bare = [run(&[], vec![flow("f", "reno", 1)], vec![])];
        let written = write_csv(&folder.path().join("c"), &Tables::new(&bare)).unwrap();
        assert_eq!(written.len(), 2, "{written:?}");
    }

    #[test]
    fn an_error_names_the_file_that_could_not_be_written() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("flows.csv")).unwrap();
        let error = write_csv(folder.path(), &Tables::new(&comparison())).unwrap_err().to_string();
        assert!(error.starts_with("cannot write ") && error.contains("flows.csv: "), "{error}");
    }
}
