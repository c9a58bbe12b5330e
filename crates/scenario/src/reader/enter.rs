//! How values enter what they describe.

use suimon_model::Loss;
use suimon_units::Probability;

use super::fields::{Field, Fields};
use super::schema::{AnyKey, Form, Key, Keys, Kind};
use super::shared::Shared;
use crate::error::ScenarioError;

impl<T> Keys<T> {
    /// Enters all that `fields` say into `target`, and the defaults of what they leave out. Keys without either leave
    /// it as it is, and so do those that are read apart.
    ///
    /// # Errors
    /// The first key that is missing or does not read, in the order of the keys.
    pub(super) fn enter(
        &self,
        target: &mut T,
        fields: &Fields<'_>,
        shared: &Shared<'_>,
    ) -> Result<(), ScenarioError> {
        self.0.iter().try_for_each(|key| key.enter(target, fields, shared))
    }
}

impl<T> Key<T> {
    /// Enters what `fields` say of this key.
    pub(super) fn enter(
        &'static self,
        target: &mut T,
        fields: &Fields<'_>,
        shared: &Shared<'_>,
    ) -> Result<(), ScenarioError> {
        if matches!(self.form(), Form::Tables(_)) {
            return Ok(());
        }
        match fields.holding(self)? {
            Some(field) => self.kind.enter(target, &field, shared),
            None => Ok(()),
        }
    }
}

impl<T> Kind<T> {
    fn enter(&self, target: &mut T, field: &Field<'_>, shared: &Shared<'_>) -> Result<(), ScenarioError> {
        match self {
            Self::Text(put) => put(target, field.text()?).map_err(|problem| field.error(problem))?,
            Self::Name(put) => put(target, field.name()?),
            Self::TwoNames(put) => put(target, field.two_names()?),
            Self::Names(put) => put(target, field.names()?),
            Self::Count { put, .. } => put(target, field.count()?),
            Self::Flag(put) => put(target, field.flag()?),
            Self::Time(put) => put(target, field.time()?),
            Self::TimeOrOff(put) => put(target, field.time_or_off()?),
            Self::Start(put) => put(target, field.start()?),
            Self::Periods(put) => put(target, field.outages()?),
            Self::Rate(put) => put(target, field.rate()?),
            Self::LinkRate(put) => put(target, field.link_rate()?),
            Self::Bytes(put) => put(target, field.bytes()?),
            Self::Buffer(put) => put(target, field.buffer()?),
            Self::Probability(put) => put(target, field.probability()?),
            Self::Decibels(put) => put(target, field.decibels()?),
            Self::Fading(put) => put(target, field.fading()?),
            Self::File(format, put) => put(target, shared.files.capacity(field, *format)?),
            Self::Profile(put) => put(target, field.profile()?),
            Self::Algorithm(role, put) => put(target, field.algorithm(*role)?),
            Self::Scheme(put) => put(target, field.scheme()?),
            Self::Cell(put) => put(target, shared.cell(field)?),
            Self::Medium(put) => put(target, shared.medium(field)?),
            Self::Word(words) => field.choice(words)?(target),
            Self::Section(_, put) => put(target, &field.table()?, shared)?,
            Self::Loss(keys, put) => put(target, loss(keys, field, shared)?),
            Self::Apart(_) | Self::Sections(_) | Self::Paths | Self::List => {}
        }
        Ok(())
    }
}

/// A probability, or the table of a chain.
fn loss(keys: &Keys<Loss>, field: &Field<'_>, shared: &Shared<'_>) -> Result<Loss, ScenarioError> {
    if !field.is_table() {
        let probability = field.share()?;
        return Ok(if probability.get() == 0.0 { Loss::None } else { Loss::Random(probability) });
    }
    let zero = Probability::ZERO;
    let mut loss = Loss::GilbertElliott { to_bad: zero, to_good: zero, loss_good: zero, loss_bad: zero };
    keys.enter(&mut loss, &field.table()?, shared)?;
    Ok(loss)
}
