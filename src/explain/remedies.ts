// What to do about each reason that kcp writes, about each gate of a move, and about common reasons of Kubernetes. One
// sentence each; docs/reference/reasons.md says more.
import type { Gate } from '#placement/index.ts'

/** The remedy for a reason in a condition or an Event; undefined if there is none, or nothing to do. */
export function remedyOf(reason: string): string | undefined {
  return Object.hasOwn(remedies, reason) ? remedies[reason] : undefined
}

/** The reasons with a remedy here. */
export function reasonsWithRemedy(): readonly string[] {
  return Object.keys(remedies)
}

const askForAnother = 'ask for another member: kubectl annotate --overwrite KIND NAME kcp.dev/clusters=MEMBER'

const remedies: Readonly<Record<string, string>> = {
  // Workloads.
  NoClusterFits: 'see what each filter says of each member: kcp placement explain',
  ClusterNotFound: 'register that member (kcp member join), or name another one; kubectl get members lists them',
  WrongClusters: 'correct the annotation kcp.dev/clusters: names of members with commas, or none',
  ClusterNotReady: "wait until the member answers; admin: see the member's condition Ready (kcp explain member/NAME)",
  ClusterLost: 'admin: repair the member; if it is switched off: kcp fence MEMBER',
  ClusterFenced: 'when the member is repaired: kcp fence MEMBER --undo',
  ClusterDraining: `${askForAnother}; or admin: kcp drain MEMBER --undo`,
  ClusterCordoned: `${askForAnother}; or admin: kcp uncordon MEMBER`,
  NotAdmitted: `${askForAnother}; or admin: label the LogicalCluster as spec.logicalClusterSelector of the member asks`,
  ForbiddenByPlacement: `${askForAnother}; or admin: change the Placement that the message names`,
  LabelsDoNotMatch: 'change require.labelSelector of the Placement, or admin: label the MemberCluster',
  ExpressionDoesNotMatch: 'change require.cel of the Placement',
  TaintNotTolerated: 'add the taint to spec.tolerations of the Placement, or admin: remove it from the MemberCluster',
  FieldsUnsupported: 'remove the field that the message names, or add a member of a newer version',
  InsufficientCapacity:
    'lower requests or replicas, or admin: add nodes, raise spec.capacity of the member, or join one',
  LimitExceeded:
    'lower requests or replicas, or admin: raise spec.limits of the logical cluster that the message names',
  SpreadUneven: 'raise maxSkew or lower minDomains of the Placement',
  VolumesElsewhere: 'ask for the member that has the volumes, or remove the annotation kcp.dev/clusters',
  MoveStalled: 'mend what the new copy waits for; until then the old copy stays. Or ask for the former member again',
  ClassMissing: 'name a class that the member has (kubectl get members -o yaml), or admin: create the class there',
  Held: 'see condition Placed of the workload that the message names',
  ChangeHeld: 'remove the fields that the message names from the objects, or admin: upgrade the member that lacks them',
  Drifted:
    'change the object in the logical cluster to what the member has, or undo the change in the member; apply.drift of the Placement decides whether kcp undoes it',
  SyncFailed: 'mend what refuses the object in the member (webhooks, quotas, policies), or the object itself',
  // LogicalClusters.
  NotServed: 'check that kcp apiserver runs and that the operator can reach it',
  NameNotAllowed: 'create it under another name',
  NearLimit: 'admin: raise spec.limits of the logical cluster that the message names, or delete what is not needed',
  LimitReached: 'admin: raise spec.limits of the logical cluster that the message names, or delete what is not needed',
  ParentsInvalid: 'correct spec.parentRef; kcp tree draws all logical clusters',
  ChildrenRemain: 'delete the children, or give them another parent',
  IssuersInvalid: 'correct the fields of spec.authentication that the message names',
  KeysUnreadable:
    'check the URL and certificateAuthority of the issuer in spec.authentication, and that it runs; admin: see --egress-allow',
  WebhookFailing:
    'check url, certificateAuthority and the token of spec.audit.webhook, and that it runs; admin: see --egress-allow',
  NamespaceMissing: 'create the namespace, or remove the entry from spec.kubeconfigs',
  SecretNotOurs: 'delete that Secret, or choose another name in spec.kubeconfigs',
  Forbidden: 'bind ClusterRole kcp-kubeconfig-secrets to the operator, see docs/reference/kubeconfigs.md',
  ServiceAccountMissing: 'create the ServiceAccount in the logical cluster',
  // MemberClusters.
  Unreachable: 'check that the API server of the member runs and that kcp operator can reach it',
  Lost: 'check that the API server of the member runs and that kcp operator can reach it; if the member is off: kcp fence',
  CredentialsInvalid: "renew the credentials: run 'kcp member join' again",
  Refused: "renew the credentials: run 'kcp member join' again",
  ConnectionUnusable: "replace the kubeconfig of the member: run 'kcp member join' again",
  NotAccepted: 'see condition Accepted of the member',
  RegisteredTwice: 'remove one of the two MemberClusters',
  WaitingForAgent: "apply the manifest of 'kcp member join NAME --pull' in the member",
  TokenExpired: "make another token: run 'kcp member join NAME --pull' again",
  WaitingForApproval: 'let the agent in: kcp member approve NAME',
  ApprovalExpired: "make another token: run 'kcp member join NAME --pull' again",
  CertificateExpired: 'start the cluster or its agent, then let it in again: kcp member approve NAME',
  WaitingForReadmission: 'let the agent in again: kcp member approve NAME',
  NotRenewed: 'see the log of Deployment kcp-agent in the member',
  AgentTooOld: 'in the member: kubectl -n kcp-system set image deployment/kcp-agent agent=IMAGE',
  AgentTooNew:
    'update the installation, or in the member: kubectl -n kcp-system set image deployment/kcp-agent agent=IMAGE',
  NotGranted: "let an agent in: run 'kcp member join NAME --pull'",
  DefinitionsDiffer:
    'admin: bring the definition in the member to the version of the others, or remove the fields from the objects',
  Queued:
    'wait, or admin: raise --volume-moves and its bounds of members and logical clusters (docs/how-to/move-volumes.md)',
  TooManyAtOnce: 'see docs/placement.md, "Workloads that vanish"',
  ObjectsFail:
    'see the Events of that object: mend what refuses the object in the member (webhooks, quotas, policies), or the object itself',
  // Kubernetes.
  Unschedulable: 'lower the requests, or admin of the member: add nodes or remove taints',
  FailedScheduling: 'lower the requests, or admin of the member: add nodes or remove taints',
  ImagePullBackOff: 'correct the name of the image, or give the pod imagePullSecrets',
  ErrImagePull: 'correct the name of the image, or give the pod imagePullSecrets',
  InvalidImageName: 'correct the name of the image',
  CrashLoopBackOff: 'see why it ends: kubectl logs POD --previous',
  Error: 'see why it ended: kubectl logs POD --previous',
  OOMKilled: 'raise the memory limit, or make the program use less',
  CreateContainerConfigError: 'create the ConfigMap or Secret that the message names',
  RunContainerError: 'correct command, volumes or security context of the container',
  Unhealthy: 'see what the probe gets: kubectl logs POD; correct the probe or the program',
  FailedMount: 'create the volume, ConfigMap or Secret that the message names',
  ProgressDeadlineExceeded: 'see the pods of the newest ReplicaSet; go back with kubectl rollout undo',
  FailedCreate: 'mend what refuses the pods: a quota, a webhook, a policy or the pod security level',
  BackoffLimitExceeded: 'see the logs of its pods, then delete the Job and create it again',
  DeadlineExceeded: 'raise spec.activeDeadlineSeconds, then create the Job again',
  Evicted: 'raise the requests of the pod, or admin of the member: give its nodes more room',
}

/** What a copy waits for at a gate, and what to do if the wait is long. */
export interface GateText {
  /** Completes "waits for"; the same words as in src/placement/move/guards.ts. */
  readonly waitsFor: string
  readonly todo?: string
}

/** The text of a gate. For an unknown gate, which a newer release has written, the text is the name of the gate. */
export function gateText(gate: string): GateText {
  return Object.hasOwn(gateTexts, gate) ? gateTexts[gate as Gate] : { waitsFor: gate }
}

const fenceIfOff = 'if that member is switched off, admin: kcp fence MEMBER'
const seePods = 'see why they are not: kubectl get pods, kubectl describe pod'

export const gateTexts: Readonly<Record<Gate, GateText>> = {
  NothingElsewhere: {
    waitsFor: 'the copies in other member clusters to be gone, because it must not run twice',
    todo: fenceIfOff,
  },
  OrdinalFree: { waitsFor: 'a pod of the other member cluster to end', todo: fenceIfOff },
  VolumesCopied: {
    waitsFor: 'its volumes to be copied',
    todo: 'admin: kubectl get volumemoves tells how far each volume is, kubectl describe why one waits',
  },
  VolumesHere: {
    waitsFor: 'its volumes to arrive',
    todo: 'admin: kubectl get volumemoves tells how far each volume is, kubectl describe why one waits',
  },
  SpecObserved: {
    waitsFor: 'the controllers of the member cluster to see it',
    todo: 'admin of the member: check that its kube-controller-manager runs',
  },
  RolloutResumed: {
    waitsFor: 'its rollout to be resumed: a member makes no pods of a Deployment that is paused',
    todo: 'kubectl rollout resume deployment NAME',
  },
  RolloutComplete: { waitsFor: 'its pods to be ready', todo: seePods },
  EndpointsPublished: {
    waitsFor: 'its endpoints to be known in all member clusters',
    todo: 'admin: see which member does not answer (kcp diagnose)',
  },
  ReplacementServes: { waitsFor: 'the new copy to serve', todo: 'see what the new copy waits for' },
  AddressesReplaced: {
    waitsFor: 'the new member cluster to have addresses for clients, as this one has',
    todo: 'admin of the new member: check its load balancer or its Ingress controller',
  },
  NamespaceMayLeave: {
    waitsFor: 'the other workloads of its namespace to serve elsewhere',
    todo: 'see what the other workloads of the namespace wait for',
  },
  SuccessorKnown: { waitsFor: 'a member cluster that can take it', todo: 'see why none can: kcp placement explain' },
  OrdinalsMoved: { waitsFor: 'all its pods to be in the other member cluster' },
  NeverServed: { waitsFor: 'a decision' },
  NothingElseServes: { waitsFor: 'the new copy to fail' },
  RunsEnded: { waitsFor: 'the end of the Jobs that it started', todo: 'wait, or delete these Jobs' },
  DrainElapsed: { waitsFor: 'its last requests to end' },
  EndpointsGone: { waitsFor: 'its endpoints to leave all member clusters' },
  CopyGone: {
    waitsFor: 'the member cluster to confirm that nothing of it is left',
    todo: 'see what holds its pods there (finalizers, preStop hooks, a node that is off)',
  },
  AddressesKnown: { waitsFor: 'clients to know its addresses' },
  AddressesForgotten: { waitsFor: 'clients to forget the addresses of the member cluster' },
  MemberLost: { waitsFor: 'the member cluster to be lost' },
  MemberAnswers: {
    waitsFor: 'the member cluster to answer',
    todo: 'admin: repair the member; if it is switched off: kcp fence MEMBER',
  },
  MemberFenced: {
    waitsFor: 'the member cluster to be fenced',
    todo: 'admin: make sure that the member is off, then: kcp fence MEMBER',
  },
  MemberNotFenced: {
    waitsFor: 'the member cluster to be released',
    todo: 'admin, when it is repaired: kcp fence MEMBER --undo',
  },
}
