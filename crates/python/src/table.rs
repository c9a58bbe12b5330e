//! Tables and columns that data frames take over without a copy, by the Arrow PyCapsule interface.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field};
use pyo3::exceptions::{PyImportError, PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCapsule, PyDict};
use suimon_report::VerdictTable;

use crate::errors::InternalError;

/// A table with named columns.
#[pyclass(frozen, module = "suimon._suimon")]
pub(crate) struct Table {
    name: &'static str,
    batch: RecordBatch,
}

/// A column of a table.
#[pyclass(frozen, sequence, module = "suimon._suimon")]
pub(crate) struct Column {
    field: Field,
    values: ArrayRef,
}

fn internal(error: ArrowError) -> PyErr {
    InternalError::new_err(error.to_string())
}

impl Table {
    /// The table that `make` makes, without the interpreter's lock.
    pub(crate) fn of(py: Python<'_>, make: impl Fn() -> suimon_report::Table + Send + Sync) -> Self {
        py.detach(|| {
            let table = make();
            // Samples may be millions, and their texts are few.
            let is_series = table.name().ends_with("series");
            let batch = if is_series { table.dictionary_batch() } else { table.record_batch() };
            Self { name: table.name(), batch }
        })
    }

    /// The same with NaN for missing numbers, which pandas would copy a column for; it stands there already.
    fn with_nan(&self) -> PyResult<RecordBatch> {
        let columns =
            self.batch.columns().iter().map(|column| match column.as_primitive_opt::<Float64Type>() {
                Some(numbers) => Arc::new(Float64Array::new(numbers.values().clone(), None)),
                None => Arc::clone(column),
            });
        RecordBatch::try_new(self.batch.schema(), columns.collect()).map_err(internal)
    }

    pub(crate) fn of_verdicts(tables: &[VerdictTable]) -> Self {
        let rows = || tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        let column = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
        let columns = [
            ("experiment", column(rows().map(|(table, _)| table.title.as_str()).collect())),
            ("claim", column(rows().map(|(_, row)| row.claim.as_str()).collect())),
            ("paper", column(rows().map(|(_, row)| row.paper.as_str()).collect())),
            ("tolerance", column(rows().map(|(_, row)| row.tolerance.as_str()).collect())),
            ("measured", column(rows().map(|(_, row)| row.measured.as_str()).collect())),
            ("verdict", column(rows().map(|(_, row)| row.verdict.as_str()).collect())),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("the columns are equally long");
        Self { name: "verdicts", batch }
    }
}

#[pymethods]
impl Table {
    /// Its name.
    #[getter]
    fn name(&self) -> &'static str {
        self.name
    }

    /// Names of the columns, with units.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The column called `name`.
    fn __getitem__(&self, name: &str) -> PyResult<Column> {
        let schema = self.batch.schema();
        let Some((place, field)) = schema.column_with_name(name) else {
            let accepted = self.columns().join(", ");
            let problem = format!("no column is called \"{name}\"; accepted: {accepted}");
            return Err(PyKeyError::new_err(problem));
        };
        Ok(Column { field: field.clone(), values: self.batch.column(place).clone() })
    }

    /// Its rows, each a mapping from column to value.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let schema = self.batch.schema();
        (0..self.batch.num_rows())
            .map(|row| {
                let dict = PyDict::new(py);
                for (field, column) in schema.fields().iter().zip(self.batch.columns()) {
                    dict.set_item(field.name(), value(py, column, row)?)?;
                }
                Ok(dict)
            })
            .collect()
    }

    /// A polars data frame.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "polars")?.call_method1("DataFrame", (slf,))
    }

    /// A pyarrow table.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pyarrow")?.call_method1("table", (slf,))
    }

    /// A pandas data frame, each column a block of its own so that numbers are not copied.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        library(py, "pandas")?;
        let options = [("split_blocks", true)].into_py_dict(py)?;
        let shown = Bound::new(py, Self { name: self.name, batch: self.with_nan()? })?;
        Self::to_arrow(&shown)?.call_method("to_pandas", (), Some(&options))
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.batch.num_rows(), self.columns().join(", "));
        format!("<suimon.Table {} of {rows} rows: {columns}>", self.name)
    }

    /// The Arrow C schema of its rows.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(internal)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The Arrow C stream of its rows; nothing is copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A hint, which the interface lets a producer leave aside.
        drop(requested_schema);
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

/// The library called `name`, or an error that says how to get it.
fn library<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name)
        .map_err(|_| PyImportError::new_err(format!("this takes {name}; accepted: pip install {name}")))
}

#[pymethods]
impl Column {
    /// Its name, with the unit.
    #[getter]
    fn name(&self) -> &str {
        self.field.name()
    }

    /// Rows.
    fn __len__(&self) -> usize {
        self.values.len()
    }

    /// The value in `row`; `None` where there is none.
    fn __getitem__<'py>(&self, py: Python<'py>, row: isize) -> PyResult<Bound<'py, PyAny>> {
        let length = self.values.len();
        let place = if row < 0 { row.checked_add_unsigned(length) } else { Some(row) };
        match place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < length) {
            Some(place) => value(py, &self.values, place),
            None => Err(PyIndexError::new_err(format!("row {row} of {length}"))),
        }
    }

    /// All values as a list.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        (0..self.values.len()).map(|row| value(py, &self.values, row)).collect()
    }

    /// The Arrow C schema and array of its values; nothing is copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let (array, _): (FFI_ArrowArray, _) = to_ffi(&self.values.to_data()).map_err(internal)?;
        let schema = FFI_ArrowSchema::try_from(&self.field).map_err(internal)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

fn value<'py>(py: Python<'py>, values: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if values.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match values.data_type() {
        DataType::UInt64 => values.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Float64 => values.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Dictionary(..) => {
            let words = values.as_dictionary::<Int32Type>();
            let place = words.key(row).expect("it is there, as asked before");
            words.values().as_string::<i32>().value(place).into_pyobject(py)?.into_any()
        }
        _ => values.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
    })
}
