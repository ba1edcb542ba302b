// Definitions that would make the server compute without end are refused or served, and no other tenant notices.
// KCP_STORIES_ONLY: a pattern of titles.
import { describeStories } from './describe-stories.ts'

describeStories(new RegExp(process.env['KCP_STORIES_ONLY'] ?? '.'))
