// SPDX-License-Identifier: Apache-2.0
// Lists that the server tells page by page, each with the cursor of the next.
import type { ComponentChildren } from 'preact';
import type { Resource } from './live';
import { type Place, turnTo, wasTurned } from './router';
import { Empty, Refusal, Skeleton } from './ui';

function Pager({ place, next, note }: { place: Place; next: string | undefined; note: string }) {
  const cursor = place.query.get('cursor');
  if (!cursor && !next) return null;
  return (
    <div class="pager" role="group" aria-label="Pages of the list">
      <span class="quiet">{note}</span>
      {cursor && (
        <button type="button" onClick={() => turnTo(place, '')}>
          First page
        </button>
      )}
      {cursor && wasTurned() && (
        <button type="button" onClick={() => history.back()}>
          Previous page
        </button>
      )}
      <button type="button" disabled={!next} onClick={() => turnTo(place, next ?? '')}>
        Next page
      </button>
    </div>
  );
}

/** One page of a list: `rows` are its rows, drawn as `children`. The server looks at so many candidates at a time:
    where none of them fits, there is no row and yet a next page. */
export function Listed<T extends { next?: string }>(props: {
  page: Resource<T>;
  rows: unknown[] | undefined;
  place: Place;
  note: string;
  none: ComponentChildren;
  children: ComponentChildren;
}) {
  const { page, rows } = props;
  const next = page.data?.next;
  return (
    <>
      {page.error && <Refusal problem={page.error} />}
      {!rows && !page.error && <Skeleton lines={8} />}
      {rows?.length === 0 && !next && props.none}
      {rows?.length === 0 && next && (
        <Empty icon="search" title="No matches on this page">
          The next page searches further.
        </Empty>
      )}
      {rows && rows.length > 0 && props.children}
      {rows && <Pager place={props.place} next={next} note={props.note} />}
    </>
  );
}
