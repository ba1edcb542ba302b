// Where there is no host, LogicalClusters are born with the finalizer that holds them until their content is gone: the
// operator would put it there first thing, in a write of its own.
import { rootClusterName, tryClusterName } from '../../../apimachinery/meta/index.ts'
import { contentFinalizer, logicalClusters } from '../../../crds/index.ts'
import type { AdmissionPlugin } from '../admission.ts'

/** Names that are refused get none: nothing is ever kept for them. */
export const contentFinalizerAtBirth: AdmissionPlugin = {
  name: 'ContentFinalizer',
  mutate({ operation, definition, subresource, context, name }, { metadata }) {
    const { group, resource } = definition.info
    if (operation !== 'CREATE' || subresource !== '' || context.cluster.name !== rootClusterName) return
    if (group !== logicalClusters.group || resource !== logicalClusters.resource) return
    if (name === rootClusterName || tryClusterName(name) === undefined) return
    const { finalizers = [] } = metadata
    if (!finalizers.includes(contentFinalizer)) metadata.finalizers = [...finalizers, contentFinalizer]
  },
}
