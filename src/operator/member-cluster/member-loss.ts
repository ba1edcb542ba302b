// Whether a member is lost, as its syncer needs it: while it is, the operator speaks for the member (lost-members/).
import type { SharedInformers } from '#client/index.ts'
import { isLostMember, memberClusters, type MemberCluster } from '#crds/index.ts'

export interface MemberLoss {
  isLost(): boolean
  /** Calls the listener when it answers again after it was lost. Returns the function that ends it. */
  onReturn(listener: () => void): () => void
}

/** The loss of the member with this name. */
export function memberLoss(name: string, informers: SharedInformers): MemberLoss {
  const informer = informers.of<MemberCluster>(memberClusters)
  return {
    isLost: () => isLostMember(informer.store.get(name)),
    onReturn: (listener) =>
      informer.onChange(({ key, before, after }) => {
        if (key === name && isLostMember(before) && !isLostMember(after)) listener()
      }),
  }
}
