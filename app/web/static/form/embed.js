// Shows a form on a page of another site.
