//! Tables as Parquet, with their origin in the file's metadata.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::error::{ReportError, create_folder};
use crate::header::ReportHeader;
use crate::table::Table;

/// Writes every table that has rows as `<name>.parquet` into `directory`, which is made if missing.
///
/// # Errors
/// When the folder or a file cannot be written.
pub fn write_parquet<'a>(
    directory: &Path,
    header: &ReportHeader,
    tables: impl IntoIterator<Item = &'a Table>,
) -> Result<Vec<PathBuf>, ReportError> {
    create_folder(directory)?;
    let mut written = Vec::new();
    for table in tables.into_iter().filter(|table| table.rows() > 0) {
        let path = directory.join(table.name()).with_extension("parquet");
        let file = File::create(&path).map_err(ReportError::file(&path))?;
        write_table(table, header, file).map_err(ReportError::parquet(&path))?;
        written.push(path);
    }
    Ok(written)
}

fn write_table(table: &Table, header: &ReportHeader, file: File) -> Result<(), ParquetError> {
    let batch = table.record_batch();
    let metadata = [
        ("suimon.title", &header.title),
        ("suimon.command", &header.command),
        ("suimon.version", &header.version),
    ];
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(
            metadata.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value.clone())).collect(),
        ))
        .build();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;
    use crate::samples::comparison;
    use crate::tables::Tables;

    fn header() -> ReportHeader {
        ReportHeader { command: "suimon compare dsl.toml".to_owned(), ..ReportHeader::default() }
    }

    #[test]
    fn what_is_read_back_is_what_the_table_holds() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::new(&comparison());
        let written = write_parquet(folder.path(), &header(), &tables).unwrap();
        assert_eq!(written.len(), 6);
        let with_rows = tables.all().into_iter().filter(|table| table.rows() > 0);
        for (path, table) in written.iter().zip(with_rows) {
            let reader =
                ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
            let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
            assert_eq!(batches.len(), 1);
            let expected = table.record_batch();
            assert_eq!(batches[0].columns(), expected.columns(), "{}", table.name());
            assert_eq!(batches[0].schema().fields(), expected.schema().fields(), "{}", table.name());
        }
    }

    #[test]
    fn a_file_says_which_command_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_parquet(folder.path(), &header(), &Tables::new(&comparison())).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&written[0]).unwrap()).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
        let command = metadata.iter().find(|pair| pair.key == "suimon.command").unwrap();
        assert_eq!(command.value.as_deref(), Some("suimon compare dsl.toml"));
    }

    #[test]
    fn the_same_results_give_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        let written = write_parquet(&first, &header(), &Tables::new(&comparison())).unwrap();
        write_parquet(&second, &header(), &Tables::new(&comparison())).unwrap();
        for path in written {
            let again = second.join(path.file_name().unwrap());
            assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(again).unwrap());
        }
    }
}
