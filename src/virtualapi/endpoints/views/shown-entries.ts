// The entries that the view of an export shows.
import type { GroupResource } from '#apimachinery/meta/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import { viewed } from '#virtualapi/endpoints/verbs/selection.ts'
import type { RequestView } from '#virtualapi/request/request-view.ts'

/** Whether the view shows the entry in lists and watches. */
export function isShown(view: Pick<RequestView, 'ruleFor'>, resource: GroupResource, entry: Entry): boolean {
  const rule = view.ruleFor(entry.key.cluster, resource)
  if (rule === undefined || !(rule.allows('list', '') || rule.allows('watch', ''))) return false
  return rule.matches === undefined || rule.matches(viewed(entry))
}
