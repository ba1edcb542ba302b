// The cost of all expressions of admission policies and match conditions for one request.
import { requestEntityTooLarge } from '#apimachinery/status/index.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'

/** The budget of a request in cost units. One policy alone may cost a quarter of it. */
const requestBudget = 40_000_000

/**
 * Called after every run with its cost, in cost units and in additional steps. Throws 413 once all runs of a request
 * together cost too much.
 */
export type Spent = (cost: number, steps: number) => void

const budgets = new WeakMap<RequestContext, { left: number }>()

/** The function that charges runs to the budget of the request. */
export function chargedTo(context: RequestContext): Spent {
  let budget = budgets.get(context)
  if (budget === undefined) budgets.set(context, (budget = { left: requestBudget }))
  const charged = budget
  return (cost, steps) => {
    charged.left -= cost + steps
    if (charged.left < 0) throw requestEntityTooLarge('the admission policies take too long for one request')
  }
}
