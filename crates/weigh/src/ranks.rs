//! Parts for the ranks of a job: how much each reads.

use crate::{Checkpoint, Error, Plan, Want};

/// A plan for each rank.
#[derive(Clone, Debug)]
pub struct RankPlans<'c> {
    plans: Vec<Plan<'c>>,
}

impl Checkpoint {
    /// Plans what each of several ranks reads, given the tensors and slices of each.
    ///
    /// ```no_run
    /// let checkpoint = weigh::Checkpoint::open("model")?;
    /// let ranks: Vec<Vec<weigh::Want>> = (0..8)
    ///     .map(|rank| checkpoint.tensors().iter().filter_map(|it| it.part(0, rank, 8)).collect())
    ///     .collect();
    /// let plans = checkpoint.plan_ranks(&ranks)?;
    /// println!("rank 3 has {} bytes; balance {:.3}", plans.bytes()[3], plans.balance());
    /// let mine = plans.rank(3).map(|plan| plan.load(&weigh::LoadOptions::default()));
    /// # let _ = mine;
    /// # Ok::<(), weigh::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::plan`].
    pub fn plan_ranks(&self, ranks: &[Vec<Want<'_>>]) -> Result<RankPlans<'_>, Error> {
        let plans = ranks.iter().map(|wants| self.plan(wants));
        Ok(RankPlans { plans: plans.collect::<Result<_, _>>()? })
    }
}

impl<'c> RankPlans<'c> {
    /// The plans, by rank.
    #[must_use]
    pub fn plans(&self) -> &[Plan<'c>] {
        &self.plans
    }

    /// The plan of one rank.
    #[must_use]
    pub fn rank(&self, rank: usize) -> Option<&Plan<'c>> {
        self.plans.get(rank)
    }

    /// Bytes that each rank will have in memory.
    #[must_use]
    pub fn bytes(&self) -> Vec<u64> {
        self.plans.iter().map(Plan::bytes).collect()
    }

    /// The mean of the ranks' bytes over the most that one has: 1 if all have the same, and 1 if there are
    /// none. A job waits for its largest rank, so this is the share of the time that is not waiting.
    #[must_use]
    pub fn balance(&self) -> f64 {
        let bytes = self.bytes();
        let most = bytes.iter().copied().max().unwrap_or(0);
        if most == 0 {
            return 1.0;
        }
        let total: u128 = bytes.iter().copied().map(u128::from).sum();
        let ranks = u128::try_from(bytes.len()).unwrap_or(1);
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let balance = total as f64 / (ranks * u128::from(most)) as f64;
        balance
    }
}
