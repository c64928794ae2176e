//! Moves of some kinds only: rows left out, and the indices of the others made anew. What must not
//! enter: which kinds a judge wants.

use whittle_model::policy::{Judging, JudgingWants, MoveNodeColumn, MovePodColumn, MovePoolColumn, Table};

/// The moves at `rows`, ascending, with their nodes, pods and pools; columns as in `wants`.
pub(super) fn subset(all: &Judging, wants: &JudgingWants, rows: &[usize]) -> Judging {
    let moves = rows.to_vec();
    let (nodes, kept_nodes) = children(&all.nodes, place(&wants.nodes, &MoveNodeColumn::Move), &moves);
    let (mut pods, _) = children(&all.pods, place(&wants.pods, &MovePodColumn::Move), &moves);
    if let Some(node) = place(&wants.pods, &MovePodColumn::Node).and_then(|node| pods.columns.get_mut(node)) {
        renumber(node, &kept_nodes);
    }
    let (pools, _) = children(&all.pools, place(&wants.pools, &MovePoolColumn::Move), &moves);
    Judging { moves: pick(&all.moves, &moves), nodes, pods, pools, askers: all.askers.clone(), mix: all.mix.clone() }
}

fn place<C: PartialEq>(columns: &[C], column: &C) -> Option<usize> {
    columns.iter().position(|c| c == column)
}

fn pick(table: &Table, rows: &[usize]) -> Table {
    let column = |column: &Vec<i64>| rows.iter().filter_map(|row| column.get(*row).copied()).collect();
    Table { rows: rows.len(), columns: table.columns.iter().map(column).collect() }
}

/// The rows of a table that belong to the kept moves, which are numbered anew; and which rows they were.
fn children(table: &Table, of_move: Option<usize>, moves: &[usize]) -> (Table, Vec<usize>) {
    let Some((of_move, column)) = of_move.and_then(|place| Some((place, table.columns.get(place)?))) else {
        return (table.clone(), (0..table.rows).collect());
    };
    let belongs = |row: &usize| column.get(*row).and_then(|m| usize::try_from(*m).ok()).is_some_and(|m| moves.binary_search(&m).is_ok());
    let rows: Vec<usize> = (0..table.rows).filter(belongs).collect();
    let mut kept = pick(table, &rows);
    renumber(&mut kept.columns[of_move], moves);
    (kept, rows)
}

/// Old row numbers become places among the kept ones.
fn renumber(column: &mut [i64], kept: &[usize]) {
    for value in column {
        let place = usize::try_from(*value).ok().and_then(|old| kept.binary_search(&old).ok());
        *value = place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whittle_model::policy::MoveColumn;

    #[test]
    fn indices_lead_to_the_same_rows_as_before() {
        let wants = JudgingWants {
            moves: vec![MoveColumn::Score],
            nodes: vec![MoveNodeColumn::AgeSeconds, MoveNodeColumn::Move],
            pods: vec![MovePodColumn::Move, MovePodColumn::Node],
            pools: vec![MovePoolColumn::Move],
            ..JudgingWants::default()
        };
        let table = |columns: Vec<Vec<i64>>| Table { rows: columns[0].len(), columns };
        let all = Judging {
            moves: table(vec![vec![10, 11, 12]]),
            nodes: table(vec![vec![100, 101, 102, 103], vec![0, 1, 2, 2]]),
            pods: table(vec![vec![0, 1, 2], vec![0, 1, 3]]),
            pools: table(vec![vec![0, 1, 2]]),
            ..Judging::default()
        };
        let some = subset(&all, &wants, &[0, 2]);
        assert_eq!(some.moves, table(vec![vec![10, 12]]));
        assert_eq!(some.nodes, table(vec![vec![100, 102, 103], vec![0, 1, 1]]));
        assert_eq!(some.pods, table(vec![vec![0, 1], vec![0, 2]]));
        assert_eq!(some.pools, table(vec![vec![0, 1]]));
    }
}
