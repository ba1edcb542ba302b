// LogicalClusters that we keep ourselves, in `root`, have their finalizer from birth: one deleted a moment later would
// leave its content behind. In a host the operator adds it.
import { rootClusterName, tryClusterName } from '../../apimachinery/meta/index.ts'
import { contentFinalizer, logicalClusters } from '../../crds/index.ts'
import type { AdmissionPlugin } from './admission.ts'

export const logicalClusterFinalizer: AdmissionPlugin = {
  name: 'LogicalClusterFinalizer',
  mutate({ operation, definition, context }, object) {
    const { group, resource } = definition.info
    if (operation !== 'CREATE' || context.cluster.name !== rootClusterName) return
    if (group !== logicalClusters.group || resource !== logicalClusters.resource) return
    // A name that is never served has no content to wait for.
    const { name = '', finalizers = [] } = object.metadata
    if (tryClusterName(name) === undefined || name === rootClusterName) return
    if (!finalizers.includes(contentFinalizer)) object.metadata.finalizers = [...finalizers, contentFinalizer]
  },
}
