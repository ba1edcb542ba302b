// The objects that `kcp apiserver` applies in its host, which make the host's API lead to it.

/** `all`: for a process beside the host; `apiservice`: for pods that the Service kcp-apiserver selects. */
export const registrations = ['all', 'apiservice', 'none'] as const
export type Registration = (typeof registrations)[number]
