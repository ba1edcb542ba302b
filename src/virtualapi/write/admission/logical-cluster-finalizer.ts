// Adds the finalizer to new LogicalClusters in `root`, which has them if there is no host. Otherwise a LogicalCluster
// that is deleted before the operator adds the finalizer would leave its objects in the store. In a host, only the
// operator adds it.
import { rootClusterName, tryClusterName } from '#apimachinery/meta/index.ts'
import { contentFinalizer, logicalClusters } from '#crds/index.ts'
import type { AdmissionPlugin } from './admission.ts'

export const logicalClusterFinalizer: AdmissionPlugin = {
  name: 'LogicalClusterFinalizer',
  mutate({ operation, definition, context }, object) {
    const { group, resource } = definition.info
    if (operation !== 'CREATE' || context.cluster.name !== rootClusterName) return
    if (group !== logicalClusters.group || resource !== logicalClusters.resource) return
    // A LogicalCluster with an invalid name is never served, so it has no content to delete.
    const { name = '', finalizers = [] } = object.metadata
    if (tryClusterName(name) === undefined || name === rootClusterName) return
    if (!finalizers.includes(contentFinalizer)) object.metadata.finalizers = [...finalizers, contentFinalizer]
  },
}
