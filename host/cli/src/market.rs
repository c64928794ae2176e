//! Types and prices as the command line names them: the built-in tables, or files instead.

use std::path::Path;

use whittle_sim::Given;
use whittle_sim::catalog::{CatalogError, Facts, Prices, Sources, Spot, zones_of};

use crate::args::Market;
use crate::failure::Failure;

/// The tables that the arguments mean.
///
/// # Errors
/// When a file cannot be read; the error names it, line and column.
pub fn sources(market: &Market) -> Result<Sources, Failure> {
    let mut sources = Sources::builtin(market.seed);
    if let Some(path) = &market.catalog {
        sources = sources.with_facts(table(path, Facts::parse)?);
    }
    if let Some(path) = &market.prices {
        sources = sources.with_prices(table(path, Prices::parse)?);
    }
    Ok(sources)
}

/// Where the facts come from, for people.
///
/// # Errors
/// When the region is not known, or no price list serves it.
pub fn given(market: &Market, sources: &Sources) -> Result<Given, Failure> {
    let region = &market.region;
    if zones_of(region).is_none() {
        return Err(CatalogError::UnknownRegion { region: region.clone() }.into());
    }
    let price_region = sources.prices.price_region(region)?.to_owned();
    let list = market.prices.as_ref().map_or_else(|| "built-in list".to_owned(), |path| path.display().to_string());
    let spot = match sources.spot {
        Spot::Listed => format!("spot prices: {list}"),
        Spot::ListPrice => "spot prices: taken for the on-demand prices".to_owned(),
        Spot::Model(model) => model.describe(),
    };
    Ok(Given { prices: format!("{list} of {price_region}"), price_region, spot })
}

fn table<T>(path: &Path, parse: impl Fn(&str) -> Result<T, CatalogError>) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path).map_err(|why| Failure::Read { path: path.to_owned(), why })?;
    parse(&text).map_err(|error| Failure::Table { path: path.to_owned(), error })
}
