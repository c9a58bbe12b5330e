//! Tables in Arrow's form, for Parquet files and data frames.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema};

use super::{Table, Values, Words};

impl Table {
    /// The table in Arrow's form, texts as texts.
    #[must_use]
    pub fn record_batch(&self) -> RecordBatch {
        self.batch(&DataType::Utf8, Words::plain)
    }

    /// The same with each different text once: no larger than need be, and made at once, however many rows there are.
    #[must_use]
    pub fn dictionary_batch(&self) -> RecordBatch {
        let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        self.batch(&kind, Words::dictionary)
    }

    fn batch(&self, text: &DataType, of_text: fn(&Words) -> ArrayRef) -> RecordBatch {
        let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
        for column in &self.columns {
            let (kind, array): (DataType, ArrayRef) = match &column.values {
                Values::Text(words) => (text.clone(), of_text(words)),
                Values::Count(counts) => {
                    let array = UInt64Array::new(counts.values.clone(), counts.nulls.clone());
                    (DataType::UInt64, Arc::new(array))
                }
                Values::Number(numbers) => {
                    let array = Float64Array::new(numbers.values.clone(), numbers.nulls.clone());
                    (DataType::Float64, Arc::new(array))
                }
            };
            fields.push(Field::new(&column.name, kind, true));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns are equally long")
    }
}

impl Words {
    fn dictionary(&self) -> ArrayRef {
        let is_there = BooleanBuffer::collect_bool(self.places.len(), |row| self.places[row] != Self::NONE);
        let nulls = Some(NullBuffer::new(is_there)).filter(|nulls| nulls.null_count() > 0);
        let places = Int32Array::new(self.places.clone().into(), nulls);
        let words: StringArray = self.words.iter().map(|word| Some(&**word)).collect();
        let dictionary = DictionaryArray::try_new(places, Arc::new(words));
        Arc::new(dictionary.expect("every place has a word"))
    }

    fn plain(&self) -> ArrayRef {
        Arc::new((0..self.places.len()).map(|row| self.get(row)).collect::<StringArray>())
    }
}
