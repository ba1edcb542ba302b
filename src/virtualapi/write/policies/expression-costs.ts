// The cost of all expressions of admission policies and match conditions for one request.
import { requestEntityTooLarge } from '#apimachinery/status/index.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'

/** In cost units. One policy alone may cost a quarter of it. */
const requestBudget = 40_000_000

/**
 * Told of every run what it cost, in cost units and in steps beside them. Throws 413 once all runs cost too much
 * together.
 */
export type Spent = (cost: number, steps: number) => void

const budgets = new WeakMap<RequestContext, { left: number }>()

/** Charges runs to the request. */
export function chargedTo(context: RequestContext): Spent {
  let budget = budgets.get(context)
  if (budget === undefined) budgets.set(context, (budget = { left: requestBudget }))
  const charged = budget
  return (cost, steps) => {
    charged.left -= cost + steps
    if (charged.left < 0) throw requestEntityTooLarge('the admission policies take too long for one request')
  }
}
