// The Events of an object, live.
import type { JSX } from 'preact'
import type { AnyObject } from '#console/kube/objects.ts'
import { listPath, type ObjectRef } from '#console/kube/paths.ts'
import { go } from '#console/state/router.ts'
import { text } from '#console/text.ts'
import { LiveTableView } from './table.tsx'

const events = { group: '', version: 'v1', resource: 'events' } as const

export function EventsTab({ target, object }: { readonly target: ObjectRef; readonly object: AnyObject }): JSX.Element {
  const { cluster, namespace } = target
  const query = { fieldSelector: `involvedObject.uid=${object.metadata.uid ?? ''}` }
  // Events of cluster-scoped objects are in namespace default.
  const source = { cluster, path: listPath(cluster, events, namespace === '' ? 'default' : namespace), query }
  return (
    <LiveTableView
      source={source}
      title={<h2>{text.object.tab.events}</h2>}
      label={text.object.tab.events}
      showCluster={false}
      initialOrder={{ column: 'Last Seen', descending: false }}
      open={({ namespace: of, name }) =>
        go({ page: 'object', object: { ...events, cluster, namespace: of, name }, tab: 'yaml' })
      }
    />
  )
}
